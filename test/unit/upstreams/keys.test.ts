import { generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { START_MS } from '../../support/ports.ts'
import { createSockets } from '../../support/sockets.ts'
import { createKey, startIdp, SUBJECT, type Answer, type Idp } from '../../support/upstreams/idp.ts'
import { callback, createRig, LEG } from '../../support/upstreams/rig.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

const sockets = createSockets()
let idp: Idp
beforeEach(async () => {
  idp = await startIdp(sockets)
  idp.claims = { exp: START_MS / 1000 + 10 * 3600 }
})
afterEach(() => sockets.closeAll())

const withKid = () => idp.key.jwk.kid

/** A token that a key of 1,024 bits signs, and the key as the provider lists it. */
function shortKey() {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 1024 })
  const kid = randomBytes(4).toString('hex')
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const input = `${encode({ alg: 'RS256', kid })}.${encode(idp.idClaims())}`
  const idToken = `${input}.${sign('sha256', Buffer.from(input), privateKey).toString('base64url')}`
  return { jwk: { ...publicKey.export({ format: 'jwk' }), kid }, idToken }
}

describe('logins', () => {
  it.each<[string, () => unknown[]]>([
    ['lists its key twice', () => [idp.key.jwk, { ...idp.key.jwk }]],
    ['lists what is no key', () => [null, 7, 'key', [], {}, { kty: 'XYZ', kid: 'other' }, idp.key.jwk]],
    ['lists an invalid key beside it', () => [{ kty: 'RSA', kid: withKid(), n: '!', e: 7 }, idp.key.jwk]],
    ['lists a symmetric key under its name', () => [{ kty: 'oct', kid: withKid(), k: 'c2VjcmV0' }, idp.key.jwk]],
    ['lists a short key beside it', () => [shortKey().jwk, idp.key.jwk]],
  ])('work where the identity provider %s', async (_name, keys) => {
    idp.keys = keys()
    expect((await createRig(sockets).oidc(idp).finish(LEG, callback(idp))).subject).toBe(SUBJECT)
  })

  it('are refused, and not as our own fault, where the key can’t be used', async () => {
    const short = shortKey()
    idp.keys = [short.jwk]
    idp.tokens = { id_token: short.idToken }
    const refusal = { code: 'identity_provider_error', detail: expect.stringContaining('not verified') as unknown }
    await expect(createRig(sockets).oidc(idp).finish(LEG, callback(idp))).rejects.toMatchObject(refusal)
    idp.keys = [{ kty: 'RSA', kid: withKid(), n: 'x', e: '' }]
    idp.tokens = {}
    await expect(createRig(sockets).oidc(idp).finish(LEG, callback(idp))).rejects.toMatchObject(refusal)
  })

  it.each<[string, Answer]>([
    ['does not answer', { cut: true }],
    ['is in trouble', { status: 503 }],
    ['answers what is no key set', { body: { keys: 'none' } }],
  ])('go on for an hour with the last keys while the address of the keys %s', async (_name, answer) => {
    const { oidc, clock } = createRig(sockets)
    const upstream = oidc(idp)
    await upstream.finish(LEG, callback(idp))
    idp.jwks = answer
    clock.advance(HOUR_MS)
    expect((await upstream.finish(LEG, callback(idp))).subject).toBe(SUBJECT)
    clock.advance(11 * MINUTE_MS)
    const failure = await upstream.finish(LEG, callback(idp)).catch((error: unknown) => error)
    expect(failure).toMatchObject({ code: 'identity_provider_unavailable' })
  })

  it('ask for the keys once, however many come at the hour', async () => {
    const { oidc, clock } = createRig(sockets)
    const upstream = oidc(idp)
    const logIn = () => Promise.all(Array.from({ length: 50 }, () => upstream.finish(LEG, callback(idp))))
    await logIn()
    expect(idp.count('/jwks')).toBe(1)
    clock.advance(HOUR_MS)
    await logIn()
    // The cached keys serve while new ones are fetched.
    await vi.waitFor(() => expect(idp.count('/jwks')).toBe(2))
    await logIn()
    expect(idp.count('/jwks')).toBe(2)
  })

  it('with keys that were made up are no reason to ask for the keys each time', async () => {
    const upstream = createRig(sockets).oidc(idp)
    for (let times = 0; times < 5; times++) {
      idp.tokens = { id_token: await (await createKey()).sign(idp.idClaims()) }
      await expect(upstream.finish(LEG, callback(idp))).rejects.toMatchObject({ detail: expect.any(String) as unknown })
    }
    expect(idp.count('/jwks')).toBeLessThanOrEqual(4)
  })
})
