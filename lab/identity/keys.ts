import { randomUUID } from 'node:crypto'
import { type CryptoKey, exportJWK, generateKeyPair, type JSONWebKeySet, type JWTPayload, SignJWT } from 'jose'

export type SigningAlgorithm = 'RS256' | 'ES256'

interface SigningKey {
  readonly kid: string
  readonly alg: SigningAlgorithm
  readonly privateKey: CryptoKey
  readonly publicKey: CryptoKey
}

/** The keys of the lab's issuer: always two in the set, the first of an algorithm signs. */
export interface SigningKeys {
  jwks(): Promise<JSONWebKeySet>
  /** The same without waiting: the set as it was last published. */
  readonly published: () => JSONWebKeySet
  /** A compact JWT with `kid` and `typ` set; default RS256. */
  sign(payload: JWTPayload, typ: string, alg?: SigningAlgorithm): Promise<string>
  /** New keys sign from now on. The old ones stay published, unless they are to be forgotten at once. */
  rotate(options?: { readonly forget?: boolean }): Promise<void>
}

/** Makes an RSA and an EC key; they live as long as the process. */
export async function createSigningKeys(): Promise<SigningKeys> {
  let current = await generate()
  let previous: SigningKey[] = []
  let published = await publish(current)
  return {
    jwks: () => Promise.resolve(published),
    published: () => published,
    sign(payload, typ, alg = 'RS256') {
      const key = current.find((candidate) => candidate.alg === alg)
      if (key === undefined) throw new Error(`no key for ${alg}`)
      return new SignJWT(payload).setProtectedHeader({ alg, kid: key.kid, typ }).sign(key.privateKey)
    },
    async rotate({ forget = false } = {}) {
      const fresh = await generate()
      previous = forget ? [] : current
      current = fresh
      published = await publish([...current, ...previous])
    },
  }
}

async function generate(): Promise<SigningKey[]> {
  return Promise.all((['RS256', 'ES256'] as const).map(generateOne))
}

async function generateOne(alg: SigningAlgorithm): Promise<SigningKey> {
  return { kid: `lab-${randomUUID()}`, alg, ...(await generateKeyPair(alg)) }
}

async function publish(keys: readonly SigningKey[]): Promise<JSONWebKeySet> {
  return {
    keys: await Promise.all(
      keys.map(async ({ kid, alg, publicKey }) => ({ ...(await exportJWK(publicKey)), kid, alg, use: 'sig' })),
    ),
  }
}
