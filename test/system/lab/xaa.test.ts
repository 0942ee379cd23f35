import { readFileSync } from 'node:fs'
import path from 'node:path'
import { discoverAndRequestJwtAuthGrant, exchangeJwtAuthGrant } from '@modelcontextprotocol/client'
import { decodeJwt } from 'jose'
import { Agent, request } from 'undici'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Lab } from '../../../lab/cli/lab-compose.ts'
import { logInAtRoute } from '../../../lab/cli/lab-login.ts'
import { secretOf } from '../../../lab/cli/lab-parties.ts'
import { callerHeaders, callTool, reasonOf, startTestLab, valuesOf } from '../../support/lab/proxied.ts'

let lab: Lab
beforeAll(async () => {
  lab = await startTestLab()
})
afterAll(() => lab.close())
beforeEach(() => lab.backend.forget())

const userAt = async (user: string) => {
  const token = await logInAtRoute(lab.url, '/xaa', user)
  return { token, headers: { authorization: `Bearer ${token}` } }
}

describe('xaa against our own authorization server', () => {
  test('the backend gets a token of its server about the user, and each leg is gone once', async () => {
    const before = lab.identity.calls('exchange')
    const { token, headers } = await userAt('alice')
    const [first, second] = [await callTool(lab, '/xaa', headers), await callTool(lab, '/xaa', headers)]
    expect([first.status, second.status, lab.identity.calls('exchange') - before]).toEqual([200, 200, 1])
    const [sent = ''] = valuesOf(first.seen?.headers, 'authorization')
    expect(decodeJwt(sent.slice('Bearer '.length))).toMatchObject({
      iss: lab.url,
      aud: `${lab.url}/xaa`,
      client_id: 'lab-xaa',
      email: 'alice@example.com',
      // A login and an identity assertion identify the same user.
      sub: decodeJwt(token).sub,
    })
    expect(first.seen?.headers.join('\n')).not.toContain(token)
  })

  test('of two users each gets their own', async () => {
    const seen = []
    for (const user of ['bob', 'carol']) seen.push((await callTool(lab, '/xaa', (await userAt(user)).headers)).seen)
    expect(seen.map((one) => one?.verified)).toMatchObject([
      { claims: { email: 'bob@example.com' } },
      { claims: { email: 'carol@example.com' } },
    ])
  })

  test('nothing is asserted of mallory', async () => {
    const { status, body, seen } = await callTool(lab, '/xaa', (await userAt('mallory')).headers)
    expect([status, reasonOf(body), seen]).toEqual([403, 'exchange_denied', undefined])
  })

  test('an access token of the identity provider is no ID token', async () => {
    const { status, body, seen } = await callTool(lab, '/xaa', await callerHeaders(lab))
    expect([status, reasonOf(body), seen]).toEqual([403, 'no_id_token', undefined])
  })
})

describe('the official client, at both of our parts', () => {
  const ca = readFileSync(path.join(import.meta.dirname, '../../../config/lab/secrets/lab-idp-ca/ca.crt'), 'utf8')
  const trusting = new Agent({ connect: { ca } })
  afterAll(() => trusting.close())

  /** `fetch`, that trusts the authority of the lab. */
  const trustingFetch = async (url: string | URL, init: RequestInit = {}): Promise<Response> => {
    const { method = 'GET', headers, body } = init
    const sent = await request(url, {
      method: method as 'GET',
      headers: Object.fromEntries(new Headers(headers)),
      body: typeof body === 'string' ? body : null,
      dispatcher: trusting,
    })
    return Response.json(await sent.body.json(), { status: sent.statusCode })
  }
  const ask = async (aud: string) => {
    const url = lab.identity.tlsUrl ?? ''
    const body = JSON.stringify({ sub: 'alice', aud: [aud], idToken: true })
    const headers = { 'content-type': 'application/json' }
    const minted = await trustingFetch(`${url}/lab/token`, { method: 'POST', headers, body })
    const { access_token: idToken } = (await minted.json()) as { access_token: string }
    return discoverAndRequestJwtAuthGrant({
      idpUrl: url,
      audience: lab.url,
      resource: `${lab.url}/xaa`,
      idToken,
      clientId: 'lab-login',
      clientSecret: (await secretOf('lab-login', 'client-secret')).reveal(),
      fetchFn: trustingFetch,
    })
  }

  test('gets an assertion of the identity provider, and a token of the server for it', async () => {
    const { jwtAuthGrant } = await ask('lab-login')
    const { access_token: token } = await exchangeJwtAuthGrant({
      tokenEndpoint: `${lab.url}/oauth/token`,
      jwtAuthGrant,
      clientId: 'lab-xaa',
      clientSecret: (await secretOf('lab-xaa', 'client-secret')).reveal(),
    })
    expect(decodeJwt(token)).toMatchObject({ iss: lab.url, aud: `${lab.url}/xaa`, client_id: 'lab-xaa' })
  })

  test('gets none for the ID token of another client', async () => {
    await expect(ask('another')).rejects.toThrow('invalid_grant')
  })
})
