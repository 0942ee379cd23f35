import { execFileSync } from 'node:child_process'
import { generateKeyPairSync, type KeyObject, X509Certificate } from 'node:crypto'
import { decodeJwt, decodeProtectedHeader, jwtVerify, UnsecuredJWT } from 'jose'
import { describe, expect, test } from 'vitest'
import { asFailure } from '../../../src/core/index.ts'
import { createClientAuthentication } from '../../../src/oauth/client-authentication.ts'
import type { AssertionKey } from '../../../src/oauth/client-settings.ts'
import { createManualClock, createTestSecrets, START_MS } from '../../support/ports.ts'
import { TLS } from '../../support/tls.ts'

const pem = (key: KeyObject): string => key.export({ type: 'pkcs8', format: 'pem' }).toString()
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const ed = generateKeyPairSync('ed25519')
const jwk = JSON.stringify({ ...rsa.privateKey.export({ format: 'jwk' }), kid: 'of-jwk' })

/** A certificate of an RSA key, as `openssl` makes one for an application at Entra ID. */
const made = execFileSync(
  'openssl',
  ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-subj', '/CN=us', '-days', '3650', '-keyout', '-'],
  { stdio: ['ignore', 'pipe', 'ignore'] },
).toString()
const RSA_CERTIFICATE = made.slice(made.indexOf('-----BEGIN CERT'))

const START_S = START_MS / 1_000
const URL = 'https://idp.example/token'
const BEARER = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
const SPIFFE = 'urn:ietf:params:oauth:client-assertion-type:jwt-spiffe'

const secrets = createTestSecrets({
  'a/rsa': pem(rsa.privateKey),
  'a/ec': pem(ec.privateKey),
  'a/ed': pem(ed.privateKey),
  'a/jwk': jwk,
  'a/public': rsa.publicKey.export({ type: 'spki', format: 'pem' }).toString(),
  'a/cert': RSA_CERTIFICATE,
  'a/cert-key': made.slice(0, made.indexOf('-----BEGIN CERT')),
  'a/ec-cert': TLS.client.cert.toString(),
  'a/ec-cert-key': TLS.client.key.toString(),
})
const handle = (key: string) => secrets.handle({ name: 'a', key })

interface Endpoint {
  readonly url: string
  readonly issuer?: string
}

async function assertionOf(
  key: Partial<AssertionKey> & Pick<AssertionKey, 'secret'>,
  audience?: string,
  endpoint: Endpoint = { url: URL },
) {
  const clock = createManualClock()
  const client = createClientAuthentication({ method: 'privateKeyJwt', clientId: 'us', key, audience }, clock)
  const form = new Map((await client.authenticate(endpoint)).form)
  expect(form.get('client_id')).toBe('us')
  expect(form.get('client_assertion_type')).toBe(BEARER)
  return form.get('client_assertion') ?? ''
}

describe('client assertions', () => {
  test('say who, to whom, from ten seconds before now to a minute after, and never the same twice', async () => {
    const claims = decodeJwt(await assertionOf({ secret: handle('rsa') }))
    const { jti, ...rest } = claims
    expect(rest).toEqual({
      iss: 'us',
      sub: 'us',
      aud: URL,
      iat: START_S - 10,
      nbf: START_S - 10,
      exp: START_S + 60,
    })
    expect(jti).not.toBe(decodeJwt(await assertionOf({ secret: handle('rsa') })).jti)
  })

  test.each<[string, string, Partial<AssertionKey>, string]>([
    ['an RSA key', 'rsa', {}, 'RS256'],
    ['an EC key', 'ec', {}, 'ES256'],
    ['an Ed25519 key', 'ed', {}, 'EdDSA'],
    ['an RSA key with an algorithm', 'rsa', { algorithm: 'PS384' }, 'PS384'],
    ['a JWK', 'jwk', {}, 'RS256'],
    ['a JWK with an algorithm', 'jwk', { algorithm: 'PS256' }, 'PS256'],
    ['an RSA key with a certificate', 'cert-key', { certificate: handle('cert') }, 'PS256'],
    ['an EC key with a certificate', 'ec-cert-key', { certificate: handle('ec-cert') }, 'ES256'],
  ])('%s signs with its algorithm', async (_what, name, more, alg) => {
    const assertion = await assertionOf({ secret: handle(name), ...more })
    expect(decodeProtectedHeader(assertion).alg).toBe(alg)
    const keys: Readonly<Record<string, KeyObject>> = {
      ec: ec.publicKey,
      ed: ed.publicKey,
      'cert-key': new X509Certificate(RSA_CERTIFICATE).publicKey,
      'ec-cert-key': new X509Certificate(TLS.client.cert).publicKey,
    }
    await jwtVerify(assertion, keys[name] ?? rsa.publicKey, { currentDate: new Date(START_MS) })
  })

  test('name the key by the JWK, or as the configuration says', async () => {
    expect(decodeProtectedHeader(await assertionOf({ secret: handle('jwk') })).kid).toBe('of-jwk')
    expect(decodeProtectedHeader(await assertionOf({ secret: handle('jwk'), kid: 'own' })).kid).toBe('own')
    expect(decodeProtectedHeader(await assertionOf({ secret: handle('rsa') })).kid).toBeUndefined()
  })

  test('have the thumbprints that openssl computes, and the chain', async () => {
    const openssl = (hash: string) => {
      const args = ['x509', '-noout', '-fingerprint', `-${hash}`]
      const line = execFileSync('openssl', args, { input: RSA_CERTIFICATE }).toString()
      return Buffer.from(line.slice(line.indexOf('=') + 1).replaceAll(/[^0-9A-F]/g, ''), 'hex').toString('base64url')
    }
    const certificate = handle('cert')
    const key = { secret: handle('cert-key'), certificate }
    expect(decodeProtectedHeader(await assertionOf(key))).toEqual({ alg: 'PS256', 'x5t#S256': openssl('sha256') })
    const all = decodeProtectedHeader(await assertionOf({ ...key, legacyThumbprint: true, x5c: true }))
    expect(all).toMatchObject({ x5t: openssl('sha1'), 'x5t#S256': openssl('sha256') })
    expect(all.x5c?.[0]).toBe(new X509Certificate(RSA_CERTIFICATE).raw.toString('base64'))
  })

  test.each<[string | undefined, string | undefined, string]>([
    [undefined, undefined, URL],
    [undefined, 'https://idp.example', 'https://idp.example'],
    ['tokenEndpoint', 'https://idp.example', URL],
    ['issuer', 'https://idp.example', 'https://idp.example'],
    ['urn:x', 'https://idp.example', 'urn:x'],
  ])('audience %j where the issuer is %j: %s', async (audience, issuer, expected) => {
    const endpoint: Endpoint = { url: URL, ...(issuer === undefined ? {} : { issuer }) }
    expect(decodeJwt(await assertionOf({ secret: handle('rsa') }, audience, endpoint)).aud).toBe(expected)
  })

  test.each<[string, () => Promise<unknown>, string]>([
    ['a public key', () => assertionOf({ secret: handle('public') }), 'config_error'],
    ['a key of another kind', () => assertionOf({ secret: handle('ec'), algorithm: 'RS256' }), 'config_error'],
    ['a key of another curve', () => assertionOf({ secret: handle('ec'), algorithm: 'ES384' }), 'config_error'],
    ['a JWK with another algorithm', () => assertionOf({ secret: handle('jwk'), algorithm: 'EdDSA' }), 'config_error'],
    [
      'a certificate of another key',
      () => assertionOf({ secret: handle('rsa'), certificate: handle('cert') }),
      'config_error',
    ],
    ['no certificate', () => assertionOf({ secret: handle('rsa'), certificate: handle('rsa') }), 'config_error'],
    ['an unknown issuer', () => assertionOf({ secret: handle('rsa') }, 'issuer'), 'config_error'],
  ])('%s is refused', async (_what, make, code) => {
    expect(await make().catch((error: unknown) => asFailure(error).code)).toBe(code)
  })

  test('an expired certificate is unavailable, as the clock says', async () => {
    const clock = createManualClock(new X509Certificate(RSA_CERTIFICATE).validToDate.getTime() - 1)
    const key = { secret: handle('cert-key'), certificate: handle('cert') }
    const client = createClientAuthentication({ method: 'privateKeyJwt', clientId: 'us', key }, clock)
    await client.authenticate({ url: URL })
    clock.advance(1)
    await expect(client.authenticate({ url: URL })).rejects.toMatchObject({
      code: 'secret_unavailable',
      detail: 'the certificate in secret a/cert has expired',
    })
  })
})

describe('a key and its certificate in two secrets', () => {
  const renewing = () => {
    const values = createTestSecrets({ 'k/key': TLS.client.key.toString(), 'k/cert': TLS.client.cert.toString() })
    const [secret, certificate] = [values.get('k/key'), values.get('k/cert')]
    const settings = { method: 'privateKeyJwt', clientId: 'us', key: { secret, certificate } } as const
    const client = createClientAuthentication(settings, createManualClock())
    const assertion = async () => new Map((await client.authenticate({ url: URL })).form).get('client_assertion') ?? ''
    const isSignedBy = async (cert: Buffer): Promise<boolean> => {
      const verified = jwtVerify(await assertion(), new X509Certificate(cert).publicKey, {
        currentDate: new Date(START_MS),
      })
      return verified.then(
        () => true,
        () => false,
      )
    }
    return { client, secret, certificate, isSignedBy }
  }

  test.each([
    ['the certificate first', ['certificate', 'secret']],
    ['the key first', ['secret', 'certificate']],
  ] as const)('are renewed one after the other, and the pair from before signs between: %s', async (_what, order) => {
    const { isSignedBy, ...rig } = renewing()
    expect(await isSignedBy(TLS.client.cert)).toBe(true)
    const next = { certificate: TLS.otherServer.cert.toString(), secret: TLS.otherServer.key.toString() }
    rig[order[0]].set(next[order[0]])
    expect(await isSignedBy(TLS.client.cert)).toBe(true)
    expect(await isSignedBy(TLS.client.cert)).toBe(true)
    rig[order[1]].set(next[order[1]])
    expect(await isSignedBy(TLS.otherServer.cert)).toBe(true)
  })

  test('stay as they are when one of them turns into something else', async () => {
    const { isSignedBy, secret, certificate } = renewing()
    expect(await isSignedBy(TLS.client.cert)).toBe(true)
    secret.set('nothing')
    expect(await isSignedBy(TLS.client.cert)).toBe(true)
    certificate.set('nothing')
    expect(await isSignedBy(TLS.client.cert)).toBe(true)
  })

  test('retire no credentials when the certificate alone is renewed', () => {
    const { client, secret } = renewing()
    expect(client.lasting).toEqual([secret])
  })
})

const jwtUntil = (exp: number, more: object = {}) => new UnsecuredJWT({ exp, ...more }).encode()

describe('a token in a file', () => {
  const rig = (first: string, clientId: string | undefined, type: 'jwt-bearer' | 'jwt-spiffe' = 'jwt-bearer') => {
    const clock = createManualClock()
    const files = createTestSecrets({ 'file/token': first })
    const token = files.get('file/token')
    const client = createClientAuthentication({ method: 'tokenFile', clientId, token, type }, clock)
    return { clock, token, client, form: async () => (await client.authenticate({ url: URL })).form }
  }

  test.each([
    ['jwt-bearer', BEARER],
    ['jwt-spiffe', SPIFFE],
  ] as const)('is shown as %s', async (type, name) => {
    const text = jwtUntil(START_S + 60)
    const assertion = [
      ['client_assertion_type', name],
      ['client_assertion', text],
    ]
    expect(await rig(text, 'us', type).form()).toEqual([['client_id', 'us'], ...assertion])
    expect(await rig(text, undefined, type).form()).toEqual(assertion)
  })

  test('whose time is over is looked for once more', async () => {
    const { clock, token, form } = rig(jwtUntil(START_S + 60), 'us')
    const renewed = jwtUntil(START_S + 120)
    clock.advance(60_000)
    await expect(form()).rejects.toMatchObject({ code: 'secret_unavailable' })
    token.pending = renewed
    expect(await form()).toContainEqual(['client_assertion', renewed])
  })

  test('is not what retires credentials when it is renewed', () => {
    const { client } = rig(jwtUntil(START_S + 60), 'us')
    expect([client.secrets.length, client.lasting.length]).toEqual([1, 0])
  })
})

describe('a certificate in TLS', () => {
  const rig = (cert = TLS.client.cert.toString(), key = TLS.client.key.toString()) => {
    const clock = createManualClock()
    const values = createTestSecrets({ 'tls/cert': cert, 'tls/key': key })
    const [certificate, keyHandle] = [values.get('tls/cert'), values.get('tls/key')]
    const settings = { method: 'tlsClient', clientId: 'us', certificate, key: keyHandle } as const
    return { clock, certificate, keyHandle, client: createClientAuthentication(settings, clock) }
  }

  test('goes with client_id in the form', async () => {
    const { client } = rig()
    expect(await client.authenticate({ url: URL })).toEqual({ form: [['client_id', 'us']], headers: {} })
    expect(client.certificate?.()?.cert).toEqual(TLS.client.cert)
  })

  test('is the same object until both are renewed, and the pair from before between', () => {
    const { client, certificate, keyHandle } = rig()
    const first = client.certificate?.()
    certificate.set(TLS.server.cert.toString())
    expect(client.certificate?.()).toBe(first)
    keyHandle.set(TLS.server.key.toString())
    expect(client.certificate?.()?.cert).toEqual(TLS.server.cert)
  })

  test('that is renewed for the same key retires no credentials', () => {
    const { client, keyHandle } = rig()
    expect(client.lasting).toEqual([keyHandle])
  })

  test.each([
    ['a key of another certificate', TLS.client.cert.toString(), TLS.server.key.toString(), 'config_error'],
    ['no certificate', 'nothing', TLS.client.key.toString(), 'secret_unavailable'],
  ])('%s is refused', async (_what, cert, key, code) => {
    const { client } = rig(cert, key)
    await expect(client.authenticate({ url: URL })).rejects.toMatchObject({ code })
    expect(client.certificate?.()).toBeUndefined()
  })

  test('is not presented to a plain http URL', async () => {
    const { client } = rig()
    await expect(client.authenticate({ url: 'http://127.0.0.1/token' })).rejects.toMatchObject({
      code: 'config_error',
      detail: 'the client certificate in secret tls/cert requires TLS, but http://127.0.0.1/token is plain http',
    })
  })

  test('that has expired is unavailable', async () => {
    const { client, clock } = rig()
    clock.advance(new X509Certificate(TLS.client.cert).validToDate.getTime() - START_MS)
    await expect(client.authenticate({ url: URL })).rejects.toMatchObject({ code: 'secret_unavailable' })
  })
})
