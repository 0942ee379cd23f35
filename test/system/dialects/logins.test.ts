import type { ServerResponse } from 'node:http'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { mayHeal } from '../../../src/oauth/index.ts'
import { Failure } from '../../../src/core/index.ts'
import { loginCredentials } from '../../../src/login/index.ts'
import { Browser } from '../../support/authserver/browser.ts'
import {
  authorizeUrl,
  atUpstream,
  backFrom,
  makePkce,
  postJson,
  redeem,
  register,
  startRig,
  upstreamOf,
} from '../../support/authserver/rig.ts'
import { createRig as createObtainRig, startEndpoint } from '../../support/obtain/harness.ts'
import { usePaperServer } from '../../support/login/paper-server.ts'
import { createCaller } from '../../support/ports.ts'
import { createSockets } from '../../support/sockets.ts'
import { startIdp, SUBJECT, type Idp } from '../../support/upstreams/idp.ts'
import { callback, createRig, IN_TIME, LEG } from '../../support/upstreams/rig.ts'
import { answerOf, type Dialect, dialectsOf, isAnswered, outcomeOf } from '../../support/dialects/table.ts'

const sockets = createSockets()
const paper = usePaperServer()
let idp: Idp
beforeEach(async () => {
  idp = await startIdp(sockets)
})
afterEach(() => sockets.closeAll())

const UPSTREAMS = ['oidc', 'oauth2'] as const

describe.each(UPSTREAMS)('a refresh at an upstream of type %s', (type) => {
  it.each(dialectsOf('logins', 'refresh'))('$name', async (row) => {
    const upstream = createRig(sockets)[type](idp, { scopes: ['openid', 'offline_access'] })
    const { tokens } = await upstream.finish(LEG, callback(idp))
    idp.token = ({ form }) => (isAnswered(row, form) ? answerOf(row) : undefined)
    const refreshing = upstream.refresh(tokens, SUBJECT, IN_TIME)
    const { outcome, detail } = await outcomeOf(refreshing)
    expect([outcome, detail]).toEqual([row.expect, expect.stringContaining(row.detail ?? '')])
    if (outcome === 'ok') {
      const renewed = await refreshing
      const { refresh_token: sent } = (row.body ?? {}) as { refresh_token?: string }
      if (row.status === 200 || row.status === 201)
        expect(renewed.tokens.refreshToken?.reveal()).toBe(sent || tokens.refreshToken?.reveal())
    } else if (outcome === 'deadGrant') {
      const failure: unknown = await refreshing.catch((error: unknown) => error)
      expect(failure).toMatchObject({ challenge: { error: 'invalid_token' } })
      const { error } = (row.body ?? {}) as { error?: string }
      expect(failure instanceof Failure && mayHeal(failure)).toBe(error !== 'invalid_grant')
    }
  })
})

describe('a refresh of `extauth stdio --login`', () => {
  const answer = (row: Dialect) => (response: ServerResponse) => {
    const { status = 200, headers, body } = answerOf(row)
    response.writeHead(status, headers).end(typeof body === 'string' ? body : JSON.stringify(body))
  }

  it.each(dialectsOf('logins', 'refresh'))('$name', async (row) => {
    await paper.login()
    paper.raw['/token'] = (body) => {
      const form = Object.fromEntries(body)
      return form['grant_type'] === 'refresh_token' && isAnswered(row, form) ? answer(row) : undefined
    }
    const later = loginCredentials(paper.options({ now: () => Date.now() + 600_000 }))
    const asked = later.refused(await paper.stored(), 'Bearer', true)
    const { status = 200 } = row
    const isOutage = row.expect === 'outage' && (status < 400 || status === 408 || status === 429 || status >= 500)
    if (isOutage) await expect(asked).rejects.toThrow('the token refresh failed')
    else await asked
    expect(paper.shown).toHaveLength(isOutage || row.expect === 'ok' ? 1 : 2)
  })
})

describe.each(UPSTREAMS)('a code at an upstream of type %s', (type) => {
  it.each(dialectsOf('logins', 'code'))('$name', async (row) => {
    const upstream = createRig(sockets)[type](idp)
    const { body } = row
    const isObject = typeof body === 'object' && body !== null
    const idToken = type === 'oidc' ? { id_token: await idp.idToken({ at_hash: undefined }) } : {}
    idp.token = answerOf({ ...row, ...(isObject ? { body: { ...body, ...idToken } } : {}) })
    const { outcome, detail } = await outcomeOf(upstream.finish(LEG, callback(idp)))
    expect([outcome, detail]).toEqual([row.expect, expect.stringContaining(row.detail ?? '')])
  })
})

describe.each(['exchange', 'clientCredentials'] as const)('%s', (kind) => {
  it.each(dialectsOf('logins', kind))('$name', async (row) => {
    const endpoint = await startEndpoint(sockets, (_request, response) => {
      const { status = 200, headers, body } = answerOf(row)
      response.writeHead(status, headers).end(typeof body === 'string' ? body : JSON.stringify(body))
    })
    const rig = createObtainRig(sockets, { secrets: { 'idp/secret': 's' }, outbound: { retry: false } })
    const asked = rig[kind]({
      tokenUrl: endpoint.url,
      audience: 'a',
      clientId: 'us',
      clientSecretRef: { name: 'idp', key: 'secret' },
    })
    const { outcome, detail } = await outcomeOf(asked.header(createCaller()))
    expect([outcome, detail]).toEqual([row.expect, expect.stringContaining(row.detail ?? '')])
  })
})

describe('an ID token', () => {
  it.each(dialectsOf('logins', 'idToken'))('$name', async (row) => {
    idp.claims = { ...row.claims }
    const { outcome } = await outcomeOf(createRig(sockets).oidc(idp).finish(LEG, callback(idp)))
    expect(outcome).toBe(row.expect)
  })
})

describe('an authorization request', () => {
  it.each(dialectsOf('logins', 'authorize'))('$name', async ({ query = '' }) => {
    const rig = await startRig(sockets, { resources: (url) => [{ url: `${url}/mcp`, scopes: [], providers: [] }] })
    const client = await register(rig)
    const pkce = makePkce()
    const url = authorizeUrl(rig, client, pkce, { scope: undefined, resource: undefined })
    const resource = encodeURIComponent(rig.resources[0]?.url ?? '')
    const browser = new Browser()
    const asked = await browser.get(`${url}&${query.replaceAll('R', resource)}`)
    const back = await atUpstream(rig, browser, await browser.press(asked, 'continue'))
    const code = new URL(back.location ?? '').searchParams.get('code') ?? ''
    expect((await redeem(rig, client, code, pkce)).status).toBe(200)
  })
})

describe('a callback', () => {
  it.each(dialectsOf('logins', 'callback'))('$name', async ({ codeLength = 40, responseMode }) => {
    const more = responseMode === undefined ? {} : { additionalAuthorizationParams: { response_mode: responseMode } }
    const rig = await startRig(sockets, { upstreams: (at) => [upstreamOf(at, 'corp', more)] })
    const client = await register(rig)
    const pkce = makePkce()
    const browser = new Browser()
    const sent = await browser.press(await browser.get(authorizeUrl(rig, client, pkce)), 'continue')
    expect(new URL(sent.location ?? '').searchParams.get('response_mode')).toBe(responseMode ?? null)
    const url = new URL(backFrom(rig, sent, { code: 'x'.repeat(codeLength) }))
    if (responseMode === 'form_post') {
      const body = new URLSearchParams(url.search)
      body.set('id_token', 'x')
      body.set('user', '{"name":{"firstName":"A"}}')
      const [address] = url.href.split('?')
      // A page of another site: without cookies, with its own origin.
      const headers = { origin: 'https://appleid.example' }
      const posted = await fetch(address ?? '', { method: 'POST', body, headers, redirect: 'manual' })
      expect([posted.status, posted.headers.get('access-control-allow-origin')]).toEqual([303, null])
      const location = new URL(posted.headers.get('location') ?? '', address)
      expect([...location.searchParams.keys()]).toEqual(['code', 'state', 'iss'])
      url.search = location.search
    }
    const back = await browser.get(url.href)
    const code = new URL(back.location ?? '').searchParams.get('code') ?? ''
    expect((await redeem(rig, client, code, pkce)).status).toBe(200)
  })

  it('takes no form where no upstream posts one', async () => {
    const rig = await startRig(sockets)
    const post = (headers: Readonly<Record<string, string>>) =>
      fetch(`${rig.url}/mcp/oauth/callback`, {
        method: 'POST',
        body: new URLSearchParams({ state: 's' }),
        headers,
        redirect: 'manual',
      })
    expect((await post({ origin: 'https://appleid.example' })).status).toBe(403)
    expect((await post({})).status).toBe(405)
  })
})

describe('client registration', () => {
  it.each(dialectsOf('logins', 'registration'))('$name', async ({ body }) => {
    const rig = await startRig(sockets)
    expect((await postJson(`${rig.issuer}/oauth/register`, body)).status).toBe(201)
  })

  it.each(dialectsOf('logins', 'registrationAnswer'))('of `extauth stdio --login`, $name', async ({ status, body }) => {
    paper.documents['/register'] = () => [status ?? 201, body as Record<string, unknown>]
    expect((await paper.login()).get('client_id')).toBe('c1')
  })
})
