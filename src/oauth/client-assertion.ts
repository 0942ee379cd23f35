import { createPrivateKey, randomUUID, type KeyObject } from 'node:crypto'
import type { CryptoKey, JWK } from 'jose'
import { Failure, type Clock, type SecretHandle } from '../core/index.ts'
import { readJsonObject } from '../http/index.ts'

const LIFETIME_SECONDS = 60
const CURVE_ALGORITHMS: ReadonlyMap<unknown, string> = new Map([
  ['prime256v1', 'ES256'],
  ['secp384r1', 'ES384'],
  ['secp521r1', 'ES512'],
])
const ALGORITHMS = /^(?:RS|PS|ES)(?:256|384|512)$|^EdDSA$|^Ed25519$/

interface SigningKey {
  readonly key: CryptoKey | KeyObject
  readonly alg: string
  readonly kid: string | undefined
}

function algorithmOf(key: KeyObject): string | undefined {
  if (key.asymmetricKeyType === 'rsa') return 'RS256'
  if (key.asymmetricKeyType === 'ed25519') return 'EdDSA'
  return CURVE_ALGORITHMS.get(key.asymmetricKeyDetails?.namedCurve)
}

async function importKey(text: string): Promise<SigningKey> {
  if (!text.trimStart().startsWith('{')) {
    const key = createPrivateKey(text)
    const alg = algorithmOf(key)
    if (alg === undefined) throw new Error('no algorithm for this key')
    return { key, alg, kid: undefined }
  }
  const members = readJsonObject(Buffer.from(text))
  const jwk: JWK & { kty: string } = { kty: '', ...members }
  if (typeof jwk.d !== 'string') throw new Error('not a private key')
  const alg = jwk.alg ?? algorithmOf(createPrivateKey({ key: { ...jwk }, format: 'jwk' }))
  if (alg === undefined || !ALGORITHMS.test(alg)) throw new Error('no algorithm for this key')
  const { importJWK } = await import('jose')
  const key = await importJWK(jwk, alg)
  if (key instanceof Uint8Array) throw new Error('not a private key')
  return { key, alg, kid: jwk.kid }
}

/** Whether a text is a private key that can sign client assertions, as `createClientAssertion` takes it. */
export async function isClientKey(text: string): Promise<boolean> {
  try {
    await importKey(text)
    return true
  } catch {
    return false
  }
}

/**
 * Makes client assertions (RFC 7523 §2.2, §3) of one client, for the endpoint that is their audience: signed with the private key in
 * the secret (a JWK, or PEM in PKCS #8, PKCS #1 or SEC 1), good for 60 s and one use. Throws `config_error` for a key
 * that can't sign, `secret_unavailable` while there is none.
 */
export function createClientAssertion(
  clientId: string,
  secret: SecretHandle,
  clock: Clock,
): (audience: string) => Promise<string> {
  let version = 0
  let signingKey: Promise<SigningKey> | undefined
  return async (audience) => {
    const text = secret.current().reveal()
    const nowSeconds = Math.floor(clock.now() / 1_000)
    if (signingKey === undefined || version !== secret.version) {
      version = secret.version
      signingKey = importKey(text)
    }
    try {
      const { key, alg, kid } = await signingKey
      const { SignJWT } = await import('jose')
      return await new SignJWT({ jti: randomUUID() })
        .setProtectedHeader({ alg, ...(kid === undefined ? {} : { kid }) })
        .setIssuer(clientId)
        .setSubject(clientId)
        .setAudience(audience)
        .setIssuedAt(nowSeconds)
        .setExpirationTime(nowSeconds + LIFETIME_SECONDS)
        .sign(key)
    } catch (cause) {
      const { label } = secret
      throw new Failure('config_error', {
        detail: `secret ${label} is not a private key that can sign`,
        secret: label,
        cause,
      })
    }
  }
}
