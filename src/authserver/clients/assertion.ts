import { hashKey } from '../../cache/index.ts'
import type { Claims, Clock, Log, Outbound } from '../../core/index.ts'
import { readJsonObject } from '../../http/index.ts'
import {
  lookAtSignature,
  readKeySet,
  type SignatureHeader,
  type UnverifiedJwt,
  type VerificationKey,
} from '../../oauth/index.ts'
import { SIGNATURE_ALGORITHMS } from '../../resources/index.ts'
import type { Store } from '../../storage/index.ts'
import type { ClientNetwork } from '../client-network.ts'
import { EARLY_SECONDS, EXPIRED_SECONDS } from '../lifespans.ts'
import { OAuthError } from '../oauth-error.ts'
import type { Client } from './client.ts'
import { createFetched } from './fetched.ts'

/** Maximum lifetime of a client assertion in seconds; its `jti` is kept as long. */
const MOST_ASSERTION_SECONDS = 3_600
const MOST_KEY_SETS = 200

export interface AssertionParts {
  /** Accepted audiences of an assertion (RFC 7523 §3): the issuer and its endpoints. */
  readonly audiences: ReadonlySet<string>
  readonly store: Store
  /** For the `jwks_uri` of clients: through the address guard. */
  readonly outbound: Outbound
  readonly clientNetwork: ClientNetwork
  readonly clock: Clock
  readonly log: Log
}

/**
 * Verifies a client assertion (RFC 7523 §3, `private_key_jwt`) and consumes its `jti`. Throws `OAuthError`
 * `invalid_client`, `StoreError`, and `overloaded` when the client's keys cannot be fetched now.
 */
export type TakeAssertion = (client: Client, assertion: string, jwt: UnverifiedJwt) => Promise<void>

export function createTakeAssertion(parts: AssertionParts): TakeAssertion {
  const { audiences, store, clock } = parts
  const keySets = createFetched({
    ...parts,
    what: 'client key set',
    accept: 'application/json, application/jwk-set+json',
    most: MOST_KEY_SETS,
    read: (_url, { body }) => keysOf(readJsonObject(body)),
  })

  const check = async (client: Client, assertion: string, header: SignatureHeader) => {
    const { jwks, jwksUri } = client
    if (jwksUri === undefined) return checkAtHand(assertion, header, keysOf(jwks))
    const look = await lookAtSignature(assertion, header, await keySets.find(jwksUri))
    if (look.check !== 'unknown_key') return look.check
    return (await lookAtSignature(assertion, header, await keySets.newerThan(jwksUri, look.keys))).check
  }

  return async (client, assertion, { header, payload }) => {
    const signature = headerOf(header, client)
    const { iss, aud, jti } = payload
    if (iss !== client.id) throw refused('iss of the assertion is not the client')
    if (typeof jti !== 'string' || jti === '') throw refused('jti of the assertion is missing')
    const named = [aud].flat()
    if (named.length === 0 || !named.every((one) => typeof one === 'string' && audiences.has(one)))
      throw refused('aud of the assertion must be this server only')
    if ((await check(client, assertion, signature)) !== 'good')
      throw refused("the assertion's signature matches no key of the client")
    const problem = timeProblem(payload, clock.now() / 1_000)
    if (problem !== undefined) throw refused(problem)
    const ttlMs = (MOST_ASSERTION_SECONDS + EXPIRED_SECONDS) * 1_000
    if (!(await store.putIfAbsent(`assertion:${hashKey([client.id, jti])}`, Buffer.alloc(0), ttlMs)))
      throw refused('the assertion was used before')
  }
}

const refused = (why: string): OAuthError => new OAuthError('invalid_client', why)

function keysOf(document: Claims | undefined): readonly VerificationKey[] {
  const keys = document && readKeySet(document)
  if (keys === undefined) throw refused('the client key set is invalid')
  return keys
}

/**
 * Tries each of the few keys that the client or operator supplied: keys without `kid` (PEM) may match any `kid`, and
 * several exist during key rotation.
 */
async function checkAtHand(assertion: string, header: SignatureHeader, keys: readonly VerificationKey[]) {
  const { check } = await lookAtSignature(assertion, header, keys)
  for (const key of check === 'good' ? [] : keys.filter(({ kid }) => kid === undefined)) {
    const one = await lookAtSignature(assertion, { ...header, kid: undefined }, [key])
    if (one.check === 'good') return one.check
  }
  return check
}

function headerOf({ alg, kid }: Claims, { assertionAlgorithm }: Client): SignatureHeader {
  const allowed: readonly string[] = assertionAlgorithm === undefined ? SIGNATURE_ALGORITHMS : [assertionAlgorithm]
  if (typeof alg !== 'string' || !allowed.includes(alg))
    throw refused('alg of the assertion is not allowed for the client')
  if (kid !== undefined && typeof kid !== 'string') throw refused('kid of the assertion is not a string')
  return { alg, kid }
}

/** RFC 7523 §3: `exp` is required, `nbf` and `iat` are optional. */
function timeProblem({ exp, nbf = 0, iat = 0 }: Claims, nowSeconds: number): string | undefined {
  if (typeof exp !== 'number' || typeof nbf !== 'number' || typeof iat !== 'number')
    return 'exp, nbf and iat must be numbers'
  if (nowSeconds - EXPIRED_SECONDS >= exp) return 'the assertion has expired'
  if (Math.max(nbf, iat) > nowSeconds + EARLY_SECONDS) return 'the assertion is not valid yet'
  return exp > nowSeconds + MOST_ASSERTION_SECONDS ? "the assertion's lifetime is too long" : undefined
}
