import { type CryptoKey, exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createSockets } from '../../support/sockets.ts'
import { TLS } from '../../support/tls.ts'
import { LIMITS, postForm, register, startRig, type Rig, type TestClient } from '../../support/authserver/rig.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const INSIDE = { clientMetadata: { allowPrivateIP: true, caBundleRef: { name: 'idp', key: 'ca' } }, limits: LIMITS }
const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

type Key = { readonly privateKey: CryptoKey; readonly jwk: JWK }
const makeKey = async (kid: string, alg = 'ES256'): Promise<Key> => {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true })
  return { privateKey, jwk: { ...(await exportJWK(publicKey)), kid } }
}
let key: Key
let other: Key
beforeAll(async () => {
  key = await makeKey('k')
  other = await makeKey('other')
})
afterAll(() => sockets.closeAll())

let made = 0
/** A good assertion with changes; undefined takes a claim away. */
function assertionOf(
  rig: Rig,
  client: TestClient,
  claims: Readonly<Record<string, unknown>> = {},
  signer = key,
  header: Readonly<Record<string, unknown>> = {},
): Promise<string> {
  // The clock of the server, which is not this machine's.
  const now = Math.floor(rig.clock.now() / 1_000)
  const base = { iss: client.id, sub: client.id, aud: rig.issuer, jti: `j${(made += 1)}`, iat: now, exp: now + 60 }
  const all = Object.entries({ ...base, ...claims }).filter(([, value]) => value !== undefined)
  return new SignJWT(Object.fromEntries(all))
    .setProtectedHeader({ alg: 'ES256', kid: signer.jwk.kid ?? '', ...header })
    .sign(signer.privateKey)
}

/** The error that the token endpoint answers; `invalid_grant` is that of a client who was let in. */
async function ask(rig: Rig, assertion: string, more: Readonly<Record<string, string>> = {}): Promise<string> {
  const form = { client_assertion_type: ASSERTION_TYPE, client_assertion: assertion, ...more }
  const response = await postForm(`${rig.issuer}/oauth/token`, {
    grant_type: 'refresh_token',
    refresh_token: 'x',
    ...form,
  })
  return ((await response.json()) as { error: string }).error
}

async function start(metadata: object = {}, spec: Readonly<Record<string, unknown>> = { limits: LIMITS }) {
  const rig = await startRig(sockets, { spec })
  const keys = { jwks: { keys: [key.jwk] } }
  return { rig, client: await register(rig, { token_endpoint_auth_method: 'private_key_jwt', ...keys, ...metadata }) }
}

describe('a client that signs assertions (private_key_jwt)', () => {
  it('is let in once per assertion, with ours as only audience', async () => {
    const { rig, client } = await start()
    const good = await assertionOf(rig, client)
    expect(await ask(rig, good)).toBe('invalid_grant')
    expect(await ask(rig, good)).toBe('invalid_client')
    for (const aud of [`${rig.issuer}/oauth/token`, `${rig.issuer}/oauth/revoke`, [rig.issuer]])
      expect(await ask(rig, await assertionOf(rig, client, { aud }))).toBe('invalid_grant')
    for (const aud of ['https://other.example', [rig.issuer, 'https://other.example'], [], undefined, `${rig.issuer}/`])
      expect(await ask(rig, await assertionOf(rig, client, { aud }))).toBe('invalid_client')
    const same = await assertionOf(rig, client)
    const errors = await Promise.all(Array.from({ length: 20 }, () => ask(rig, same)))
    expect(errors.filter((error) => error === 'invalid_grant')).toHaveLength(1)
  })

  it('is let in at the right time only', async () => {
    const { rig, client } = await start()
    const [good, early, late] = await Promise.all([1, 2, 3].map(() => assertionOf(rig, client)))
    expect(await ask(rig, good ?? '')).toBe('invalid_grant')
    rig.clock.advance(64_000)
    expect(await ask(rig, early ?? '')).toBe('invalid_grant')
    rig.clock.advance(1_000)
    expect(await ask(rig, late ?? '')).toBe('invalid_client')
    expect(await ask(rig, good ?? '')).toBe('invalid_client')
    const future = await assertionOf(rig, client)
    rig.clock.advance(-36_000)
    expect(await ask(rig, future)).toBe('invalid_client')
    const now = Math.floor(rig.clock.now() / 1_000)
    for (const claims of [{ exp: now + 3_601 }, { exp: undefined }, { exp: 'soon' }, { nbf: now + 36 }, { iat: 'now' }])
      expect(await ask(rig, await assertionOf(rig, client, claims))).toBe('invalid_client')
    const longest = await assertionOf(rig, client, { exp: now + 3_600 })
    expect(await ask(rig, longest)).toBe('invalid_grant')
    // Its last second: it is still recorded as used.
    rig.clock.advance(3_604_000)
    expect(await ask(rig, longest)).toBe('invalid_client')
  })

  it('is refused with what is not its own', async () => {
    const { rig, client } = await start()
    const second = await register(rig, { token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [other.jwk] } })
    const refused: [string, string][] = [
      ['another key', await assertionOf(rig, client, {}, other)],
      ['another key under its name', await assertionOf(rig, client, {}, other, { kid: 'k' })],
      ['the name of another client', await assertionOf(rig, client, { iss: second.id })],
      ['another client as subject', await assertionOf(rig, client, { sub: second.id })],
      ['no identifier', await assertionOf(rig, client, { jti: undefined })],
      ['an empty identifier', await assertionOf(rig, client, { jti: '' })],
      ['no subject', await assertionOf(rig, client, { sub: undefined })],
      ['an unknown client', await assertionOf(rig, { ...client, id: 'A'.repeat(22) })],
    ]
    const [head = '', payload = ''] = (await assertionOf(rig, client)).split('.')
    const none = Buffer.from(JSON.stringify({ alg: 'none' })).toString('base64url')
    refused.push(['no signature', `${none}.${payload}.`], ['an empty signature', `${head}.${payload}.`])
    for (const [what, assertion] of refused) expect([what, await ask(rig, assertion)]).toEqual([what, 'invalid_client'])
    // An identifier is used up for its client only, and only by a valid signature.
    const jti = 'the same'
    expect(await ask(rig, await assertionOf(rig, client, { jti }, other))).toBe('invalid_client')
    expect(await ask(rig, await assertionOf(rig, second, { jti }, other))).toBe('invalid_grant')
    expect(await ask(rig, await assertionOf(rig, client, { jti }))).toBe('invalid_grant')
  })

  it('shows nothing else, and says what it is', async () => {
    const { rig, client } = await start()
    const good = () => assertionOf(rig, client)
    expect(await ask(rig, await good(), { client_id: client.id })).toBe('invalid_grant')
    expect(await ask(rig, await good(), { client_id: 'another' })).toBe('invalid_request')
    expect(await ask(rig, await good(), { client_secret: 'x' })).toBe('invalid_request')
    expect(await ask(rig, await good(), { client_assertion_type: 'x' })).toBe('invalid_request')
    expect(await ask(rig, await good(), { client_assertion_type: '' })).toBe('invalid_request')
    const bare = { grant_type: 'refresh_token', refresh_token: 'x', client_id: client.id }
    for (const form of [bare, { ...bare, client_secret: 'x' }])
      expect((await postForm(`${rig.issuer}/oauth/token`, form)).status).toBe(401)
    const publicClient = await register(rig)
    expect(await ask(rig, await assertionOf(rig, publicClient))).toBe('invalid_client')
  })

  it('keeps to the algorithm that it registered', async () => {
    const rsa = await makeKey('r', 'RS256')
    const { rig, client } = await start({ jwks: { keys: [rsa.jwk] }, token_endpoint_auth_signing_alg: 'PS256' })
    expect(await ask(rig, await assertionOf(rig, client, {}, rsa, { alg: 'RS256' }))).toBe('invalid_client')
  })
})

describe('the keys of a client at a URL', () => {
  async function publish() {
    const at = { keys: [key.jwk], status: 200, asked: 0 }
    const origin = await sockets.https(TLS.server, (_request, response) => {
      at.asked += 1
      response
        .writeHead(at.status, { 'content-type': 'application/json' })
        .end(at.keys.length === 0 ? 'hello' : JSON.stringify({ keys: at.keys }))
    })
    return { at, ...(await start({ jwks: undefined, jwks_uri: `${origin}/keys` }, INSIDE)) }
  }

  it('are fetched once, and again for a key that is new', async () => {
    const { at, rig, client } = await publish()
    for (let i = 0; i < 3; i++) expect(await ask(rig, await assertionOf(rig, client))).toBe('invalid_grant')
    expect(at.asked).toBe(1)
    at.keys = [other.jwk]
    expect(await ask(rig, await assertionOf(rig, client, {}, other))).toBe('invalid_client')
    expect(at.asked).toBe(1)
    rig.clock.advance(15_000)
    expect(await ask(rig, await assertionOf(rig, client, {}, other))).toBe('invalid_grant')
    expect(await ask(rig, await assertionOf(rig, client))).toBe('invalid_client')
    expect(at.asked).toBe(2)
  })

  it('stay in use if a refresh fails, whichever client causes it', async () => {
    const { at, rig, client } = await publish()
    expect(await ask(rig, await assertionOf(rig, client))).toBe('invalid_grant')
    at.status = 500
    rig.clock.advance(15_000)
    for (let i = 0; i < 3; i++) expect(await ask(rig, await assertionOf(rig, client, {}, other))).toBe('invalid_client')
    expect(at.asked).toBe(2)
    expect(await ask(rig, await assertionOf(rig, client))).toBe('invalid_grant')
  })

  it.each([15_000, -3_600_000])(
    'that are invalid authenticate no client, and are fetched again after %i ms',
    async (ms) => {
      const { at, rig, client } = await publish()
      at.keys = []
      for (let i = 0; i < 3; i++) expect(await ask(rig, await assertionOf(rig, client))).toBe('invalid_client')
      expect(at.asked).toBe(1)
      at.keys = [key.jwk]
      rig.clock.advance(ms)
      expect(await ask(rig, await assertionOf(rig, client))).toBe('invalid_grant')
    },
  )

  it('are not fetched from a private address unless that is allowed', async () => {
    const { rig, client } = await start({ jwks: undefined, jwks_uri: 'https://127.0.0.1:1/keys' })
    expect(await ask(rig, await assertionOf(rig, client))).toBe('invalid_client')
    expect(rig.log.lines.join('')).toContain('client key set refused')
  })
})
