import { readFileSync } from 'node:fs'
import path from 'node:path'
import { decodeJwt } from 'jose'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Agent, request } from 'undici'
import { Secret } from '../../../src/core/index.ts'
import { type LabIdentityProvider, startLabIdentityProvider } from '../../../lab/index.ts'
import { CLIENTS, movableClock } from '../../support/lab/standins.ts'

const SECRETS = path.join(import.meta.dirname, '../../../config/lab/secrets')
const read = (name: string) => readFileSync(path.join(SECRETS, name), 'utf8')
const trusting = new Agent({ connect: { ca: read('lab-idp-ca/ca.crt') } })
let identity: LabIdentityProvider

beforeAll(async () => {
  const tls = { port: 0, certificate: read('lab-idp-tls/tls.crt'), key: new Secret(read('lab-idp-tls/tls.key')) }
  identity = await startLabIdentityProvider({ port: 0, tls, clients: CLIENTS, clock: movableClock() })
})
afterAll(async () => {
  await identity.close()
  await trusting.close()
})

const json = async (url: string, body?: object) => {
  const answer = await request(url, {
    dispatcher: trusting,
    ...(body === undefined
      ? {}
      : { method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
  })
  return (await answer.body.json()) as Record<string, unknown>
}

test('on TLS it is an issuer of its own, with the same keys', async () => {
  const url = identity.tlsUrl ?? ''
  expect(url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/)
  const document = await json(`${url}/.well-known/openid-configuration`)
  expect(document).toMatchObject({ issuer: url, token_endpoint: `${url}/token` })
  expect(await json(String(document['jwks_uri']))).toEqual(identity.jwks())
  const { access_token: token } = await json(`${url}/lab/token`, { sub: 'alice' })
  expect(decodeJwt(String(token))).toMatchObject({ iss: url, sub: 'alice' })
})

test('only clients with its CA trust it', async () => {
  await expect(request(identity.tlsUrl ?? '')).rejects.toMatchObject({ code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' })
})
