import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { decodeProtectedHeader, jwtVerify } from 'jose'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ANONYMOUS, Secret } from '../../../src/core/index.ts'
import { createCaller, START_MS } from '../../support/ports.ts'
import { createSockets } from '../../support/sockets.ts'
import { TLS } from '../../support/tls.ts'
import { createRig, issued, json, startEndpoint } from '../../support/obtain/harness.ts'

const sockets = createSockets()
let endpoint: Awaited<ReturnType<typeof startEndpoint>>

beforeEach(async () => {
  endpoint = await startEndpoint(sockets, json(issued('issued-token')))
})
afterEach(() => sockets.closeAll())

const GRANT = ['grant_type', 'urn:ietf:params:oauth:grant-type:token-exchange'] as const
const SUBJECT = ['subject_token', 'callers-token'] as const
const urn = (type: string) => `urn:ietf:params:oauth:token-type:${type}`
const BASE = [
  GRANT,
  ['subject_token_type', urn('access_token')],
  ['requested_token_type', urn('access_token')],
  ['audience', 'https://backend.example'],
] as const
const SECRETS = { 'idp/secret': 's3cret:/ %ü', 'idp/actor': 'actors-token' }
const secret = { name: 'idp', key: 'secret' }
const basic = (id: string, value: string) => {
  const encode = (text: string) => new URLSearchParams([['', text]]).toString().slice(1)
  return `Basic ${Buffer.from(`${encode(id)}:${encode(value)}`).toString('base64')}`
}

const replaced = (name: string, value: string) => BASE.map((pair) => (pair[0] === name ? [name, value] : pair))

test.each<[string, Record<string, unknown>, readonly (readonly string[])[], string | undefined]>([
  ['the least', {}, [...BASE, SUBJECT], undefined],
  ['a public client', { clientId: 'us' }, [...BASE, SUBJECT, ['client_id', 'us']], undefined],
  [
    'id and secret',
    { clientId: 'a:b c', clientSecretRef: secret },
    [...BASE, SUBJECT],
    basic('a:b c', SECRETS['idp/secret']),
  ],
  [
    'secret in the body',
    { clientId: 'us', clientSecretRef: secret, clientAuthMethod: 'client_secret_post' },
    [...BASE, SUBJECT, ['client_id', 'us'], ['client_secret', SECRETS['idp/secret']]],
    undefined,
  ],
  ['scopes', { scopes: ['repo:read', 'user'] }, [...BASE, ['scope', 'repo:read user'], SUBJECT], undefined],
  ['no scopes', { scopes: [] }, [...BASE, SUBJECT], undefined],
  ['a short type', { subjectTokenType: 'jwt' }, [...replaced('subject_token_type', urn('jwt')), SUBJECT], undefined],
  [
    'a full type',
    { subjectTokenType: urn('id_token') },
    [...replaced('subject_token_type', urn('id_token')), SUBJECT],
    undefined,
  ],
  ['an empty type', { subjectTokenType: '' }, [...BASE, SUBJECT], undefined],
  [
    'a requested type',
    { requestedTokenType: 'jwt' },
    [...replaced('requested_token_type', urn('jwt')), SUBJECT],
    undefined,
  ],
  [
    'a resource',
    { resource: 'https://backend.example/mcp' },
    [...BASE, ['resource', 'https://backend.example/mcp'], SUBJECT],
    undefined,
  ],
  [
    'an actor',
    { actorTokenSecretRef: { name: 'idp', key: 'actor' }, actorTokenType: 'id_token' },
    [...BASE, SUBJECT, ['actor_token', 'actors-token'], ['actor_token_type', urn('id_token')]],
    undefined,
  ],
  [
    'an actor without a type',
    { actorTokenSecretRef: { name: 'idp', key: 'actor' } },
    [...BASE, SUBJECT, ['actor_token', 'actors-token'], ['actor_token_type', urn('access_token')]],
    undefined,
  ],
])('on the wire: %s', async (_what, spec, form, authorization) => {
  const rig = createRig(sockets, { secrets: SECRETS })
  const { header } = rig.exchange({ tokenUrl: endpoint.url, audience: 'https://backend.example', ...spec })
  expect(await header(createCaller({ token: 'callers-token' }))).toBe('authorization: Bearer issued-token')
  expect(endpoint.received).toHaveLength(1)
  expect(endpoint.received[0]).toMatchObject({ method: 'POST', path: '/token', form })
  const headers = endpoint.received[0]?.headers ?? {}
  expect(headers.authorization).toBe(authorization)
  expect(headers['content-type']).toBe('application/x-www-form-urlencoded')
  expect(headers.accept).toBe('application/json')
  expect(rig.output()).not.toMatch(/s3cret|callers-token|issued-token|actors-token/)
})

test.each([
  [undefined, 'authorization'],
  ['', 'authorization'],
  ['X-Upstream-Token', 'x-upstream-token'],
])('with externalTokenHeaderName %j the token goes into %s', async (externalTokenHeaderName, name) => {
  const { header } = createRig(sockets).exchange({ tokenUrl: endpoint.url, audience: 'a', externalTokenHeaderName })
  expect(await header(createCaller())).toBe(`${name}: Bearer issued-token`)
})

test.each(['jwt', 'opaque'] as const)('a caller with a token that is %s can exchange it', async (format) => {
  const { header } = createRig(sockets).exchange({ tokenUrl: endpoint.url, audience: 'a' })
  expect(await header(createCaller({ format, expiresAtMs: undefined }))).toBe('authorization: Bearer issued-token')
})

test('an anonymous caller has nothing to exchange', () => {
  const { obtain } = createRig(sockets).exchange({ tokenUrl: endpoint.url, audience: 'a' })
  expect(() => obtain(ANONYMOUS)).toThrow(expect.objectContaining({ code: 'config_error' }))
})

test('the token of a named upstream provider is exchanged instead, and bounds what comes back', async () => {
  const rig = createRig(sockets, {
    upstreamTokens: {
      current: (caller, provider) =>
        Promise.resolve({
          token: new Secret(`${provider} token of ${caller.subject}`),
          expiresAtMs: START_MS + 60_000,
          freshUntilMs: START_MS + 48_000,
        }),
      reject: () => Promise.resolve(false),
      demand: () => Promise.resolve(),
    },
  })
  const spec = { tokenUrl: endpoint.url, audience: 'a', subjectProviderName: 'google' }
  const issuer = 'https://id.example.com'
  const use = { provider: 'google', kind: 'access_token', issuer, isExplicit: true } as const
  await rig.exchange(spec, 'github', use).header(createCaller({ issuer, claims: { tsid: 'session' } }))
  expect(endpoint.received[0]?.form).toContainEqual(['subject_token', 'google token of alice'])
  expect(rig.cache.list().groups[0]?.soonestEndSeconds).toBe(54)
})

test('without an authorization server that holds upstream tokens such a config does not start', () => {
  const spec = { tokenUrl: endpoint.url, audience: 'a', subjectProviderName: 'google' }
  expect(() => createRig(sockets).exchange(spec)).toThrow(expect.objectContaining({ code: 'type_not_runnable' }))
})

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const p384 = generateKeyPairSync('ec', { namedCurve: 'P-384' })
const ed25519 = generateKeyPairSync('ed25519')
const pem = (key: KeyObject, type: 'pkcs8' | 'pkcs1' | 'sec1') =>
  key.export({ format: 'pem', type } as never).toString()
const jwk = (key: KeyObject, members: object = {}) => JSON.stringify({ ...key.export({ format: 'jwk' }), ...members })

test.each<[string, string, KeyObject, string, string | undefined]>([
  ['RSA in PKCS #8', pem(rsa.privateKey, 'pkcs8'), rsa.publicKey, 'RS256', undefined],
  ['RSA in PKCS #1', pem(rsa.privateKey, 'pkcs1'), rsa.publicKey, 'RS256', undefined],
  ['P-256 in SEC 1', pem(p256.privateKey, 'sec1'), p256.publicKey, 'ES256', undefined],
  ['P-384 as JWK', jwk(p384.privateKey, { kid: 'k1' }), p384.publicKey, 'ES384', 'k1'],
  ['RSA as JWK with its algorithm', jwk(rsa.privateKey, { alg: 'PS256', kid: 'k2' }), rsa.publicKey, 'PS256', 'k2'],
  ['Ed25519', pem(ed25519.privateKey, 'pkcs8'), ed25519.publicKey, 'EdDSA', undefined],
])('private_key_jwt with %s', async (_what, text, publicKey, alg, kid) => {
  const rig = createRig(sockets, { secrets: { 'idp/key': text } })
  const spec = { clientId: 'us', clientAuthMethod: 'private_key_jwt', clientKeySecretRef: { name: 'idp', key: 'key' } }
  const exchange = rig.exchange({ tokenUrl: endpoint.url, audience: 'a', ...spec })
  await exchange.header(createCaller({ subject: 'alice' }))
  await exchange.header(createCaller({ subject: 'bob' }))
  const assertions = endpoint.received.map(({ form }) => new Map(form).get('client_assertion') ?? '')
  const form = new Map(endpoint.received[0]?.form)
  expect(form.get('client_assertion_type')).toBe('urn:ietf:params:oauth:client-assertion-type:jwt-bearer')
  expect(form.get('client_id')).toBe('us')
  expect(endpoint.received[0]?.headers.authorization).toBeUndefined()
  const verified = await jwtVerify(assertions[0] ?? '', publicKey, {
    issuer: 'us',
    subject: 'us',
    audience: endpoint.url,
    currentDate: new Date(START_MS),
    requiredClaims: ['jti', 'iat', 'exp'],
  })
  expect((verified.payload.exp ?? 0) - (verified.payload.iat ?? 0)).toBe(70)
  expect(decodeProtectedHeader(assertions[0] ?? '')).toEqual({ alg, ...(kid === undefined ? {} : { kid }) })
  expect(new Set(assertions).size).toBe(2)
})

test.each([
  ['not a key', 'hello'],
  ['a public key', jwk(p256.publicKey)],
  ['a symmetric key', JSON.stringify({ kty: 'oct', k: 'c2VjcmV0', d: 'x' })],
  ['a key for another use', jwk(rsa.privateKey, { alg: 'RSA-OAEP' })],
])('private_key_jwt with %s is a config error that does not show it', async (_what, text) => {
  const rig = createRig(sockets, { secrets: { 'idp/key': text } })
  const spec = { clientId: 'us', clientAuthMethod: 'private_key_jwt', clientKeySecretRef: { name: 'idp', key: 'key' } }
  const { header } = rig.exchange({ tokenUrl: endpoint.url, audience: 'a', ...spec })
  await expect(header(createCaller())).rejects.toMatchObject({ code: 'config_error' })
  expect(endpoint.received).toHaveLength(0)
  expect(rig.output()).not.toContain(text)
})

test('the CA that the config names is the only one that counts', async () => {
  const url = `${await sockets.https(TLS.server, (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(issued('over-tls')))
  })}/token`.replace('127.0.0.1', 'localhost')
  const spec = { tokenUrl: url, audience: 'a', caCertPath: '/etc/ca.pem' }
  const answering = createRig(sockets, { caCertificate: () => () => TLS.ca }).exchange(spec)
  expect(await answering.header(createCaller())).toBe('authorization: Bearer over-tls')
  const other = createRig(sockets, { caCertificate: () => () => TLS.otherCa }).exchange(spec)
  await expect(other.header(createCaller())).rejects.toMatchObject({ code: 'identity_provider_unavailable' })
})
