import { hash } from 'node:crypto'
import { hashKey } from '../cache/index.ts'
import {
  ANONYMOUS,
  type AuthenticatedCaller,
  type Caller,
  Failure,
  type IdentityBasis,
  identityBasis,
} from '../core/index.ts'
import { checkTokenInTarget, otherScheme, parseBearer } from '../http/index.ts'
import type { AuthSection, OAuthSection } from '../resources/index.ts'
import { withCompared } from './compared.ts'
import type { AuthenticateDeps } from './deps.ts'
import { createProvider } from './provider.ts'
import { createResults } from './results.ts'
import { clockTolerance, shapeOf } from '../oauth/index.ts'
import { refused, type Verdict } from './verdict.ts'
import { createVerifyInProcess, type InProcessProvider } from './verify-in-process.ts'
import { createVerifyJwt } from './verify-jwt.ts'
import { createVerifyOpaque } from './verify-opaque.ts'

/** Authenticates callers for one `auth` section. */
export interface Authenticator {
  readonly mode: 'oauth' | 'anonymous'
  /**
   * The caller, from the values of the `Authorization` header lines and the raw query (without `?`). `peer` is the address
   * that the request came from; introspection is fair between these. Synchronous when the token is cached, and then
   * the same object for the same token. Throws or rejects with `missing_token`,
   * `invalid_token`, `expired_token` (401), `bad_request` (400), `identity_provider_unavailable`, `overloaded` (503),
   * `identity_provider_error` (502), `secret_unavailable` (500).
   */
  authenticate(authorization: readonly string[], query: string, peer?: string): Caller | Promise<Caller>
  /** Whether a caller's session was revoked (authserver.md §3); false for callers of other issuers. */
  isRevoked(caller: AuthenticatedCaller): boolean
  /**
   * Fetches keys before the first token and keeps them current. Settles when every provider has answered or failed,
   * and never rejects; waiting for it is optional.
   */
  start(): Promise<void>
  /** Names of the providers whose keys were requested but never arrived. */
  withoutKeys(): readonly string[]
  /** Closes connections, files and timers. */
  close(): Promise<void>
}

const RENEW_EVERY_MS = 30_000
/** How a caller whose token has no `sub` is identified, for the log. */
const BASES: Readonly<Record<Exclude<IdentityBasis, 'sub'>, string>> = {
  username: 'client_id and username',
  sid: 'client_id and sid',
  token: 'the token alone: a new token is a new caller',
}
/** Maximum concurrent verifications of uncached tokens; each may wait seconds for its provider. */
const MAX_IN_FLIGHT = 4096

/**
 * The authenticator for `auth` (specification §A, decisions §2). Opens files; fetches nothing before `start` or a token.
 * Tokens of `inProcess` issuers are accepted beside those of the section's providers, which may then be none, and come
 * before a provider of the same issuer (authserver.md §2.3, §2.6). Throws `config_error` when callers are anonymous all
 * the same.
 */
export function createAuthenticator(
  auth: AuthSection,
  deps: AuthenticateDeps,
  inProcess: readonly InProcessProvider[] = [],
): Authenticator {
  if (auth.mode === 'oauth') return createOAuthAuthenticator(auth.oauth, deps, inProcess)
  if (inProcess.length === 0) return ANONYMOUS_AUTHENTICATOR
  throw new Failure('config_error', { detail: 'an authorization server for callers that are anonymous' })
}

const SCHEME = 'Bearer '

/** The token after `Bearer` in its usual form; other forms take the slow path. */
function usualToken(authorization: readonly string[]): string | undefined {
  const [value] = authorization
  return authorization.length === 1 && value?.startsWith(SCHEME) === true ? value.slice(SCHEME.length) : undefined
}

/** No token: the challenge has no error (RFC 6750 §3.1); the failure names another scheme that was used. */
function missingToken(authorization: readonly string[]): Failure {
  const detail = otherScheme(authorization)
  return new Failure('missing_token', { challenge: {}, ...(detail === undefined ? {} : { detail }) })
}

/** Mode `anonymous` ignores credentials (specification, Authentication 7). */
const ANONYMOUS_AUTHENTICATOR: Authenticator = {
  mode: 'anonymous',
  authenticate: () => ANONYMOUS,
  isRevoked: () => false,
  start: () => Promise.resolve(),
  withoutKeys: () => [],
  close: () => Promise.resolve(),
}

function createOAuthAuthenticator(
  oauth: OAuthSection['oauth'],
  deps: AuthenticateDeps,
  inProcess: readonly InProcessProvider[],
): Authenticator {
  const { clock, metrics } = deps
  const tolerance = clockTolerance(oauth.toleranceSeconds)
  const providers = oauth.providers.map((settings) => createProvider(settings, tolerance, deps))
  const own = inProcess.length === 0 ? undefined : createVerifyInProcess(inProcess, { tolerance, clock })
  const verifyJwt = createVerifyJwt(providers, clock)
  const verifyOpaque = createVerifyOpaque(providers, clock)
  const results = createResults(clock, deps.rememberedBytes)
  const flights = new Map<string, Promise<AuthenticatedCaller>>()
  // Of fixed length, so that the hashed parts can't run together.
  const configHash = hashKey([JSON.stringify(oauth)])
  const outcomes = metrics.counter('extauth_authentications_total', 'Tokens looked at, by outcome.', ['outcome'])
  const count = { remembered: outcomes.with('remembered'), missing: outcomes.with('missing_token') }
  let renewal: NodeJS.Timeout | undefined

  const keyOf = (token: string): string => hash('sha256', configHash + token, 'base64url')

  /** Only verified tokens are cached, so the key need not be well-formed to be looked up. */
  const cached = (key: string): AuthenticatedCaller | undefined => {
    const caller = results.accepted(key)
    if (caller === undefined) return undefined
    own?.checkRevoked(caller)
    count.remembered.add()
    return caller
  }

  const verify = (token: string, peer: string | undefined): Verdict | Promise<Verdict> => {
    const shape = shapeOf(token)
    if (shape.kind === 'jwt') {
      const verdict = own?.verify(token, shape.jwt) ?? verifyJwt(token, shape.jwt, peer)
      const compared = (one: Verdict): Verdict => withCompared(one, shape.jwt, providers)
      return verdict instanceof Promise ? verdict.then(compared) : compared(verdict)
    }
    return shape.kind === 'opaque' ? verifyOpaque(token, peer) : refused('jwt_malformed')
  }

  const warned = new Set<string>()
  const warnWithoutSubject = ({ provider, identity }: AuthenticatedCaller): void => {
    const basis = identityBasis(identity)
    if (basis === 'sub' || warned.has(provider)) return
    warned.add(provider)
    deps.log.warn({ provider, identity: BASES[basis] }, 'tokens have no sub; sessions and caches use another identity')
  }

  /** Caches a verdict and converts it to the result of `authenticate`. */
  const conclude = (key: string, verdict: Verdict): AuthenticatedCaller => {
    results.remember(key, verdict)
    if (verdict.kind === 'accepted') {
      outcomes.with('accepted').add()
      warnWithoutSubject(verdict.caller)
      return verdict.caller
    }
    outcomes.with(verdict.failure.code).add()
    throw verdict.failure
  }

  const lookInto = (
    key: string,
    token: string,
    peer: string | undefined,
  ): AuthenticatedCaller | Promise<AuthenticatedCaller> => {
    if (flights.size >= MAX_IN_FLIGHT)
      throw new Failure('overloaded', {
        detail: `${MAX_IN_FLIGHT} tokens are already being verified`,
        retryAfterSeconds: 1,
      })
    const verdict = verify(token, peer)
    if (!(verdict instanceof Promise)) return conclude(key, verdict)
    const flight = verdict.then((one) => conclude(key, one)).finally(() => flights.delete(key))
    flights.set(key, flight)
    return flight
  }

  return {
    mode: 'oauth',
    authenticate(authorization, query, peer) {
      // The router checks paths; the query is checked here too, for servers without a router.
      if (query !== '') checkTokenInTarget('', query, authorization)
      const usual = usualToken(authorization)
      const usualKey = usual === undefined ? undefined : keyOf(usual)
      const known = usualKey === undefined ? undefined : cached(usualKey)
      if (known !== undefined) return known
      const token = parseBearer(authorization)
      if (token === undefined) {
        count.missing.add()
        throw missingToken(authorization)
      }
      const key = usualKey !== undefined && token === usual ? usualKey : keyOf(token)
      const caller = key === usualKey ? undefined : cached(key)
      if (caller !== undefined) return caller
      const refusal = results.refused(key)
      if (refusal !== undefined) {
        outcomes.with(refusal.code).add()
        throw refusal
      }
      return flights.get(key) ?? lookInto(key, token, peer)
    },
    isRevoked: (caller) => own?.isRevoked(caller) === true,
    async start() {
      renewal ??= setInterval(() => {
        for (const provider of providers) void provider.prefetch()
      }, RENEW_EVERY_MS).unref()
      // Preloads the verification library, like the keys.
      await Promise.all([import('jose'), ...providers.map((provider) => provider.prefetch())])
    },
    withoutKeys: () => providers.filter(({ keys }) => keys.isMissing()).map(({ name }) => name),
    async close() {
      clearInterval(renewal)
      results.clear()
      await Promise.all(providers.map((provider) => provider.close()))
    },
  }
}
