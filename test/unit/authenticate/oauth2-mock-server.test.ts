import { Events, OAuth2Server } from 'oauth2-mock-server'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createSockets } from '../../support/sockets.ts'
import { networked } from '../../support/authenticate/network.ts'
import { AUDIENCE, callerOf, refusalOf } from '../../support/authenticate/world.ts'

const sockets = createSockets()
let server: OAuth2Server
let issuer: string

beforeEach(async () => {
  server = new OAuth2Server()
  await server.issuer.keys.generate('RS256')
  await server.start(0, '127.0.0.1')
  issuer = server.issuer.url ?? ''
})
afterEach(async () => {
  await sockets.closeAll()
  await server.stop()
})

const open = (more: object = {}) =>
  sockets.closing(networked([{ name: 'mock', issuerUrl: issuer, audience: AUDIENCE, ...more }]))
type Change = (header: Record<string, unknown>, payload: Record<string, unknown>) => unknown
const token = (change: Change = () => undefined) =>
  server.issuer.buildToken({
    scopesOrTransform: (header, payload) => {
      Object.assign(payload, { aud: AUDIENCE, sub: 'alice' })
      change(header, payload)
    },
  })

describe('oauth2-mock-server', () => {
  it('gives tokens that are accepted', async () => {
    expect(await callerOf(open(), await token())).toMatchObject({ issuer, subject: 'alice' })
  })

  it.each<[string, Change, string]>([
    ['that have expired', (_header, payload) => (payload['exp'] = 1), 'expired_token'],
    ['without exp', (_header, payload) => delete payload['exp'], 'invalid_token'],
    ['of another issuer', (_header, payload) => (payload['iss'] = 'https://evil.example.com'), 'invalid_token'],
    ['for another audience', (_header, payload) => (payload['aud'] = 'other'), 'invalid_token'],
    ['that are not valid yet', (_header, payload) => (payload['nbf'] = Date.now() / 1000 + 60), 'invalid_token'],
    ['with crit', (header) => Object.assign(header, { crit: ['b64'], b64: true }), 'invalid_token'],
  ])('gives tokens %s, which are refused', async (_name, change, code) => {
    expect((await refusalOf(open(), await token(change))).code).toBe(code)
  })

  it.each<[string, Record<string, unknown>]>([
    ['another issuer', { issuer: 'https://evil.example.com' }],
    ['no jwks_uri', { jwks_uri: undefined }],
    ['a jwks_uri that is a number', { jwks_uri: 7 }],
  ])('announces %s, which is no ground to stand on', async (_name, change) => {
    server.service.on(Events.BeforeWellKnownOpenIdConfiguration, (response: { body: Record<string, unknown> }) => {
      Object.assign(response.body, change)
    })
    expect((await refusalOf(open(), await token())).status).toBe(502)
  })

  it('fails at discovery, which is an outage', async () => {
    server.service.on(Events.BeforeWellKnownOpenIdConfiguration, (response: { statusCode: number }) => {
      response.statusCode = 500
    })
    expect((await refusalOf(open(), await token())).status).toBe(503)
  })

  it.each<[string, number, Record<string, unknown>, number | 'accepted']>([
    ['active', 200, { active: true, aud: AUDIENCE }, 'accepted'],
    ['active for another audience', 200, { active: true, aud: 'other' }, 401],
    ['inactive', 200, { active: false }, 401],
    ['active as a text', 200, { active: 'true', aud: AUDIENCE }, 503],
    ['an error', 400, { error: 'invalid_request' }, 503],
    ['an error of its own', 500, {}, 503],
  ])('introspects to %s', async (_name, statusCode, body, expected) => {
    server.service.on(Events.BeforeIntrospect, (response: { statusCode: number; body: unknown }) => {
      Object.assign(response, { statusCode, body })
    })
    const authenticator = open({ introspectionUrl: `${issuer}/introspect` })
    const result = await callerOf(authenticator, 'opaque').then(
      () => 'accepted' as const,
      (error: { status: number }) => error.status,
    )
    expect(result).toBe(expected)
  })
})
