import { createHmac, createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { CompactSign, exportJWK, importPKCS8, type JWK } from 'jose'

/** A key pair of a mock provider. */
export interface TestKey {
  readonly privateKey: KeyObject
  /** The public members as they are published, `kid` and all. */
  readonly jwk: JWK
}

interface Pair {
  readonly publicKey: KeyObject
  readonly privateKey: KeyObject
}

const made = async (pair: Pair, members: object): Promise<TestKey> => ({
  privateKey: pair.privateKey,
  jwk: { ...(await exportJWK(pair.publicKey)), ...members },
})

// Making one takes a tenth of a second, reading one nothing.
const kept = (
  JSON.parse(readFileSync(new URL('../../fixtures/rsa-keys.json', import.meta.url), 'utf8')) as string[]
).map((der) => createPrivateKey({ key: Buffer.from(der, 'base64'), format: 'der', type: 'pkcs8' }))
let given = 0
const pairOf = (privateKey: KeyObject): Pair => ({ privateKey, publicKey: createPublicKey(privateKey) })
/** An RSA key of 2,048 bits unless it is said otherwise: unlike the seven of that size that were given before. */
export const rsaKey = (members: object = {}, modulusLength = 2048) => {
  const next = modulusLength === 2048 ? kept[given++ % kept.length] : undefined
  return made(next === undefined ? generateKeyPairSync('rsa', { modulusLength }) : pairOf(next), members)
}
export const ecKey = (namedCurve: string, members: object = {}) =>
  made(generateKeyPairSync('ec', { namedCurve }), members)
export const edKey = (members: object = {}, curve: 'ed25519' | 'ed448' = 'ed25519') =>
  made(curve === 'ed25519' ? generateKeyPairSync('ed25519') : generateKeyPairSync('ed448'), members)

/** The same key, published with other members. */
export const published = (key: TestKey, members: object): TestKey => ({
  ...key,
  jwk: { ...key.jwk, ...members },
})

/** Whether a request takes keys as the API server of Kubernetes has them, in no other media type. */
export const takesKeys = (accept: string | undefined): boolean => (accept ?? '').includes('application/jwk-set+json')

export const jwks = (keys: readonly TestKey[]) => ({ keys: keys.map((key) => key.jwk) })

export const base64url = (value: unknown): string =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')

/** A JWS by jose, independent of the tested code. `payload` is JSON unless it is a string. */
export async function signed(key: TestKey, header: object, payload: unknown): Promise<string> {
  const { alg } = header as { alg: string }
  const pem = key.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  const bytes = new TextEncoder().encode(typeof payload === 'string' ? payload : JSON.stringify(payload))
  return new CompactSign(bytes).setProtectedHeader({ ...header, alg }).sign(await importPKCS8(pem, alg))
}

/** A token with any header and payload as text, signed RS256 whatever the header says. */
export function signedRaw(key: TestKey, header: string, payload: string): string {
  const input = `${base64url(header)}.${base64url(payload)}`
  return `${input}.${sign('sha256', Buffer.from(input), key.privateKey).toString('base64url')}`
}

/** An HMAC with a public key as secret: algorithm confusion. */
export function hmacSigned(secret: string, header: object, payload: unknown): string {
  const input = `${base64url(header)}.${base64url(payload)}`
  return `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`
}
