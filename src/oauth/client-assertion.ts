import { createPrivateKey, randomUUID, type KeyObject } from 'node:crypto'
import type { CryptoKey, JWK } from 'jose'
import { Failure, type Clock } from '../core/index.ts'
import { readJsonObject } from '../http/index.ts'
import { assertionCertificate, type AssertionCertificate, refuseEnded, refuseStranger } from './client-certificate.ts'
import type { AssertionKey } from './client-settings.ts'
import { ALGORITHMS } from './signature.ts'

const LIFETIME_SECONDS = 60
/** Servers whose clock is behind ours would take an assertion for one of the future. */
const BACKDATED_SECONDS = 10
const CURVE_ALGORITHMS: ReadonlyMap<unknown, string> = new Map([
  ['prime256v1', 'ES256'],
  ['secp384r1', 'ES384'],
  ['secp521r1', 'ES512'],
])

interface SigningKey {
  readonly key: CryptoKey | KeyObject
  readonly alg: string
  readonly kid: string | undefined
  readonly certificate: AssertionCertificate | undefined
}

/** Entra ID wants PSS where a certificate says whose key it is. */
function algorithmOf(key: KeyObject, hasCertificate: boolean): string | undefined {
  if (key.asymmetricKeyType === 'rsa') return hasCertificate ? 'PS256' : 'RS256'
  if (key.asymmetricKeyType === 'ed25519') return 'EdDSA'
  return CURVE_ALGORITHMS.get(key.asymmetricKeyDetails?.namedCurve)
}

type ImportedKey = Omit<SigningKey, 'certificate'> & { readonly object: KeyObject }

async function importKey(text: string, wanted?: string, hasCertificate = false): Promise<ImportedKey> {
  if (!text.trimStart().startsWith('{')) {
    const key = createPrivateKey(text)
    const alg = wanted ?? algorithmOf(key, hasCertificate)
    if (alg === undefined) throw new Error('no algorithm for this key')
    return { key, object: key, alg, kid: undefined }
  }
  const members = readJsonObject(Buffer.from(text))
  const jwk: JWK & { kty: string } = { kty: '', ...members }
  if (typeof jwk.d !== 'string') throw new Error('not a private key')
  const object = createPrivateKey({ key: { ...jwk }, format: 'jwk' })
  const alg = wanted ?? jwk.alg ?? algorithmOf(object, hasCertificate)
  if (alg === undefined || !ALGORITHMS.has(alg)) throw new Error('no algorithm for this key')
  const { importJWK } = await import('jose')
  const key = await importJWK({ ...jwk, alg }, alg)
  if (key instanceof Uint8Array) throw new Error('not a private key')
  return { key, object, alg, kid: jwk.kid }
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
 * Makes client assertions (RFC 7523 §2.2, §3) of one client, for the audience that is given, good for 60 s and one use. With a
 * certificate the header has its thumbprint (RFC 7515 §4.1.8). Throws `config_error` for a key that can't sign or belongs to
 * another certificate, `secret_unavailable` while there is none, or when the certificate has expired.
 */
export function createClientAssertion(
  clientId: string,
  settings: AssertionKey,
  clock: Clock,
): (audience: string) => Promise<string> {
  const { secret, certificate, algorithm } = settings
  let seen = ''
  let signing: Promise<SigningKey> | undefined

  const read = async (keyText: string, chain: string | undefined): Promise<SigningKey> => {
    const { object, ...key } = await importKey(keyText, algorithm, chain !== undefined)
    const kid = settings.kid ?? key.kid
    if (chain === undefined || certificate === undefined) return { ...key, kid, certificate: undefined }
    const shown = assertionCertificate(chain, settings)
    refuseStranger(shown.own, object, certificate.label)
    return { ...key, kid, certificate: shown }
  }

  return async (audience) => {
    const [keyText, chain] = [secret.current().reveal(), certificate?.current().reveal()]
    const nowSeconds = Math.floor(clock.now() / 1_000)
    const versions = `${secret.version} ${certificate?.version ?? 0}`
    if (signing === undefined || versions !== seen) {
      seen = versions
      signing = read(keyText, chain)
    }
    try {
      const { key, alg, kid, certificate: shown } = await signing
      if (shown !== undefined && certificate !== undefined) refuseEnded(shown.own, certificate.label, clock)
      const { SignJWT } = await import('jose')
      return await new SignJWT({ jti: randomUUID() })
        .setProtectedHeader({ alg, ...(kid === undefined ? {} : { kid }), ...shown?.header })
        .setIssuer(clientId)
        .setSubject(clientId)
        .setAudience(audience)
        .setIssuedAt(nowSeconds - BACKDATED_SECONDS)
        .setNotBefore(nowSeconds - BACKDATED_SECONDS)
        .setExpirationTime(nowSeconds + LIFETIME_SECONDS)
        .sign(key)
    } catch (cause) {
      if (cause instanceof Failure) throw cause
      const { label } = secret
      throw new Failure('config_error', {
        detail: `secret ${label} is not a private key that can sign`,
        secret: label,
        cause,
      })
    }
  }
}
