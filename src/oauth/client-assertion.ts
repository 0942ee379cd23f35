import { createPrivateKey, randomUUID, type KeyObject } from 'node:crypto'
import type { CryptoKey, JWK } from 'jose'
import { Failure, type Clock } from '../core/index.ts'
import { ContentProblem } from '../files/index.ts'
import { readJsonObject } from '../http/index.ts'
import { assertionCertificate, type AssertionCertificate, refuseEnded, refuseStranger } from './client-certificate.ts'
import type { AssertionKey } from './client-settings.ts'

const LIFETIME_SECONDS = 60
/** Tolerates servers whose clock is slow, which would reject a future `iat`. */
const BACKDATED_SECONDS = 10
const CURVE_ALGORITHMS: ReadonlyMap<unknown, string> = new Map([
  ['prime256v1', 'ES256'],
  ['secp384r1', 'ES384'],
  ['secp521r1', 'ES512'],
])
const RSA_ALGORITHM = /^[RP]S(?:256|384|512)$/

interface SigningKey {
  readonly key: CryptoKey | KeyObject
  readonly alg: string
  readonly kid: string | undefined
  readonly certificate: AssertionCertificate | undefined
}

/** Entra ID requires PSS when a certificate identifies the key. */
function algorithmOf(key: KeyObject, hasCertificate: boolean): string | undefined {
  if (key.asymmetricKeyType === 'rsa') return hasCertificate ? 'PS256' : 'RS256'
  if (key.asymmetricKeyType === 'ed25519') return 'EdDSA'
  return CURVE_ALGORITHMS.get(key.asymmetricKeyDetails?.namedCurve)
}

/** The requested algorithm, else that of the key. Throws `ContentProblem` when the key does not support it. */
function fittingAlgorithm(key: KeyObject, wanted: string | undefined, hasCertificate: boolean): string {
  const own = algorithmOf(key, hasCertificate)
  if (own === undefined) throw new ContentProblem(`its key type (${kindOf(key)}) is not supported`)
  if (wanted === undefined || wanted === own) return own
  const fits = key.asymmetricKeyType === 'rsa' ? RSA_ALGORITHM.test(wanted) : own === 'EdDSA' && wanted === 'Ed25519'
  if (!fits) throw new ContentProblem(`its key (${kindOf(key)}) cannot sign with ${wanted}, only with ${own}`)
  return wanted
}

const kindOf = ({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): string =>
  [asymmetricKeyType?.toUpperCase(), asymmetricKeyDetails?.namedCurve].filter((part) => part !== undefined).join(' ')

type ImportedKey = Omit<SigningKey, 'certificate'> & { readonly object: KeyObject }

async function importKey(text: string, wanted?: string, hasCertificate = false): Promise<ImportedKey> {
  if (!text.trimStart().startsWith('{')) {
    const key = createPrivateKey(text)
    return { key, object: key, alg: fittingAlgorithm(key, wanted, hasCertificate), kid: undefined }
  }
  const members = readJsonObject(Buffer.from(text))
  const jwk: JWK & { kty: string } = { kty: '', ...members }
  if (typeof jwk.d !== 'string') throw new Error('not a private key')
  const object = createPrivateKey({ key: { ...jwk }, format: 'jwk' })
  const alg = fittingAlgorithm(object, wanted ?? jwk.alg, hasCertificate)
  const { importJWK } = await import('jose')
  const key = await importJWK({ ...jwk, alg }, alg)
  if (key instanceof Uint8Array) throw new Error('not a private key')
  return { key, object, alg, kid: jwk.kid }
}

/** Why a text is not a private key for client assertions with this algorithm, as a clause; undefined when it is. */
export async function clientKeyProblem(text: string, algorithm: string | undefined): Promise<string | undefined> {
  try {
    await importKey(text, algorithm)
    return undefined
  } catch (error) {
    return error instanceof ContentProblem ? error.message : 'it is not a private signing key'
  }
}

/**
 * Makes client assertions (RFC 7523 §2.2, §3) of one client, for the audience that is given, valid for 60 s and one use. With a
 * certificate the header has its thumbprint (RFC 7515 §4.1.8). Between the renewals of the two secrets key and certificate do not
 * fit together: then the pair from before signs, as for a key that can't be used. Throws `config_error` for a key that can't sign or
 * belongs to another certificate, `secret_unavailable` while there is none, or when the certificate has expired.
 */
export function createClientAssertion(
  clientId: string,
  settings: AssertionKey,
  clock: Clock,
): (audience: string) => Promise<string> {
  const { secret, certificate, algorithm } = settings
  let seen = ''
  let signing: Promise<SigningKey> | undefined
  let usable: SigningKey | undefined

  const read = async (keyText: string, chain: string | undefined): Promise<SigningKey> => {
    const { object, ...key } = await importKey(keyText, algorithm, chain !== undefined)
    const kid = settings.kid ?? key.kid
    if (chain === undefined || certificate === undefined) return { ...key, kid, certificate: undefined }
    const shown = assertionCertificate(chain, settings)
    refuseStranger(shown.own, object, certificate.label)
    return { ...key, kid, certificate: shown }
  }
  const readOrKeep = async (keyText: string, chain: string | undefined): Promise<SigningKey> => {
    try {
      usable = await read(keyText, chain)
    } catch (error) {
      if (usable === undefined) throw error
    }
    return usable
  }

  return async (audience) => {
    const [keyText, chain] = [secret.current().reveal(), certificate?.current().reveal()]
    const nowSeconds = Math.floor(clock.now() / 1_000)
    const versions = `${secret.version} ${certificate?.version ?? 0}`
    if (signing === undefined || versions !== seen) {
      seen = versions
      signing = readOrKeep(keyText, chain)
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
      const why = cause instanceof ContentProblem ? `: ${cause.message}` : ''
      throw new Failure('config_error', {
        detail: `secret ${label} is not a private signing key${why}`,
        secret: label,
        cause,
      })
    }
  }
}
