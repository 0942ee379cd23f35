import { createPublicKey } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import {
  base64url,
  ecKey,
  edKey,
  hmacSigned,
  published,
  rsaKey,
  signed,
  signedRaw,
  type TestKey,
} from '../../support/authenticate/keys.ts'
import { AUDIENCE, callerOf, createWorld, ISSUER, provider, refusalOf } from '../../support/authenticate/world.ts'

const world = createWorld()
const payload = { iss: ISSUER, aud: AUDIENCE, sub: 'alice', exp: world.nowSeconds() + 60 }

const rsa = await rsaKey()
const p256 = await ecKey('P-256')
const p384 = await ecKey('P-384')
const p521 = await ecKey('P-521')
const ed = await edKey()
const ed448 = await edKey({}, 'ed448')

/** An authenticator whose provider publishes these keys. */
const knowing = (...keys: readonly TestKey[]) => {
  const world = createWorld()
  world.serveKeys(keys)
  return world.authenticator([provider()])
}

const accepted: readonly (readonly [string, TestKey])[] = [
  ['RS256', rsa],
  ['RS384', rsa],
  ['RS512', rsa],
  ['PS256', rsa],
  ['PS384', rsa],
  ['PS512', rsa],
  ['ES256', p256],
  ['ES384', p384],
  ['ES512', p521],
  ['EdDSA', ed],
  ['Ed25519', ed],
]

describe('algorithms that are accepted', () => {
  it.each(accepted)('%s, signed by jose', async (alg, key) => {
    const token = await signed(key, { alg, kid: 'k' }, payload)
    expect((await callerOf(knowing(published(key, { kid: 'k', alg, use: 'sig' })), token)).subject).toBe('alice')
    expect((await callerOf(knowing(published(key, { kid: 'k' })), token)).subject).toBe('alice')
  })

  it.each(accepted)('%s, but not with a byte of the signature changed', async (alg, key) => {
    const token = await signed(key, { alg }, payload)
    const at = token.lastIndexOf('.') + 8
    const changed = `${token.slice(0, at)}${token[at] === 'A' ? 'B' : 'A'}${token.slice(at + 1)}`
    const failure = await refusalOf(knowing(key), changed)
    expect(failure).toMatchObject({ code: 'invalid_token', detail: 'the signature is wrong' })
  })

  it.each(accepted)('%s, but not with a claim changed', async (alg, key) => {
    const [header, , signature] = (await signed(key, { alg }, payload)).split('.')
    const token = `${header}.${base64url({ ...payload, sub: 'mallory' })}.${signature}`
    expect((await refusalOf(knowing(key), token)).code).toBe('invalid_token')
  })

  it.each(accepted)('%s, but not with the signature cut short or drawn out', async (alg, key) => {
    const token = await signed(key, { alg }, payload)
    expect((await refusalOf(knowing(key), token.slice(0, -4))).code).toBe('invalid_token')
    expect((await refusalOf(knowing(key), `${token}AAAA`)).code).toBe('invalid_token')
  })
})

describe('algorithms that are refused', () => {
  const pem = createPublicKey(rsa.privateKey).export({ type: 'spki', format: 'pem' }).toString()
  const none = (header: object) => `${base64url(header)}.${base64url(payload)}.`

  it.each<[string, string]>([
    ['none', none({ alg: 'none' })],
    ['None', none({ alg: 'None' })],
    ['NONE', none({ alg: 'NONE' })],
    ['none with a signature', signedRaw(rsa, '{"alg":"none"}', JSON.stringify(payload))],
    ['no alg', none({ typ: 'JWT' })],
    ['alg null', none({ alg: null })],
    ['alg a number', none({ alg: 256 })],
    ['alg an array', signedRaw(rsa, '{"alg":["RS256"]}', JSON.stringify(payload))],
    ['alg empty', signedRaw(rsa, '{"alg":""}', JSON.stringify(payload))],
    ['alg in another case', signedRaw(rsa, '{"alg":"rs256"}', JSON.stringify(payload))],
    ['alg with a space', signedRaw(rsa, '{"alg":"RS256 "}', JSON.stringify(payload))],
    ['RS1', signedRaw(rsa, '{"alg":"RS1"}', JSON.stringify(payload))],
    ['ES256K', signedRaw(rsa, '{"alg":"ES256K"}', JSON.stringify(payload))],
    ['alg called toString', signedRaw(rsa, '{"alg":"toString"}', JSON.stringify(payload))],
    ['alg called __proto__', signedRaw(rsa, '{"alg":"__proto__"}', JSON.stringify(payload))],
    ['HS256 with the public key as the secret', hmacSigned(pem, { alg: 'HS256' }, payload)],
    ['HS384', hmacSigned(pem, { alg: 'HS384' }, payload)],
    ['HS512', hmacSigned(pem, { alg: 'HS512' }, payload)],
    ['RSA-OAEP, which encrypts', signedRaw(rsa, '{"alg":"RSA-OAEP"}', JSON.stringify(payload))],
    ['dir', signedRaw(rsa, '{"alg":"dir"}', JSON.stringify(payload))],
  ])('%s', async (_name, token) => {
    const failure = await refusalOf(knowing(rsa), token)
    expect(failure).toMatchObject({ code: 'invalid_token', status: 401, detail: 'alg is not accepted' })
  })

  it('HMAC, even where the provider publishes a symmetric key', async () => {
    const world = createWorld()
    const symmetric = { kty: 'oct', kid: 'k', k: base64url('secret'), alg: 'HS256' }
    world.on(`${ISSUER}/jwks`, () => ({
      status: 200,
      headers: {},
      body: Buffer.from(JSON.stringify({ keys: [symmetric] })),
    }))
    const token = hmacSigned('secret', { alg: 'HS256', kid: 'k' }, payload)
    expect((await refusalOf(world.authenticator([provider()]), token)).code).toBe('invalid_token')
  })

  it.each<[string, string, TestKey]>([
    ['an ES256 header over an RSA key', 'ES256', rsa],
    ['an EdDSA header over an RSA key', 'EdDSA', rsa],
    ['an RS256 header over an EC key', 'RS256', p256],
    ['an ES256 header over a P-384 key', 'ES256', p384],
    ['an ES384 header over a P-256 key', 'ES384', p256],
    ['an ES512 header over an Ed25519 key', 'ES512', ed],
    ['an EdDSA header over an Ed448 key', 'EdDSA', ed448],
    ['an Ed25519 header over an Ed448 key', 'Ed25519', ed448],
  ])('%s', async (_name, alg, key) => {
    const token = `${base64url({ alg })}.${base64url(payload)}.${'A'.repeat(86)}`
    expect(await refusalOf(knowing(key), token)).toMatchObject({ detail: 'no key of the provider fits' })
  })

  it('an RSA signature of one algorithm under the name of another', async () => {
    const input = (await signed(rsa, { alg: 'RS256' }, payload)).split('.')
    const token = `${base64url({ alg: 'PS256' })}.${input[1]}.${input[2]}`
    expect(await refusalOf(knowing(rsa), token)).toMatchObject({ detail: 'the signature is wrong' })
  })

  it('an ECDSA signature in DER', async () => {
    const [header, body] = (await signed(p256, { alg: 'ES256' }, payload)).split('.')
    const { sign } = await import('node:crypto')
    const der = sign('sha256', Buffer.from(`${header}.${body}`), p256.privateKey).toString('base64url')
    expect(await refusalOf(knowing(p256), `${header}.${body}.${der}`)).toMatchObject({
      detail: 'the signature is wrong',
    })
  })

  it('an ECDSA signature of zeros', async () => {
    const [header, body] = (await signed(p256, { alg: 'ES256' }, payload)).split('.')
    const zeros = Buffer.alloc(64).toString('base64url')
    expect(await refusalOf(knowing(p256), `${header}.${body}.${zeros}`)).toMatchObject({ code: 'invalid_token' })
  })
})
