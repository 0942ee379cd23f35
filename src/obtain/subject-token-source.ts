import {
  asFailure,
  type AuthenticatedCaller,
  type ConnectedAccounts,
  type EpochMs,
  Failure,
  type FailureCode,
  FAILURES,
  GRANT_CLAIM,
  holderWithoutLogin,
  type MonotonicMs,
  type Secret,
  type UpstreamToken,
  type UpstreamTokens,
} from '../core/index.ts'
import { outboundFailure, within } from '../net/index.ts'
import { jwtIssuedMs, serviceOf } from '../oauth/index.ts'
import type { UpstreamUse } from '../resources/index.ts'
import { notConnected, widened } from './connected.ts'
import type { FetchingSource } from './source.ts'

/** The subject token (RFC 8693): sent to a service to get a credential for a caller. */
export interface SubjectToken {
  readonly token: Secret
  /** Infinity when unknown. */
  readonly expiresAtMs: EpochMs
  /** Issue time, likewise; undefined when unknown. */
  readonly issuedAtMs: EpochMs | undefined
}

/** Source of the subject token: the caller's own, or that of an upstream provider from the caller's login. */
export interface SubjectTokenSource {
  /**
   * Separates cached credentials of a session's token; empty for the caller's own token. Throws `no_session` for a
   * caller without upstream token.
   */
  keyParts(caller: AuthenticatedCaller): readonly string[]
  /** For connections: as in `FetchingSource`. */
  readonly changing?: Pick<FetchingSource, 'changingParts' | 'widen'>
  /**
   * Runs `use` with the token; `own` is the caller's own. A rejected session token is refreshed, and `use` runs once
   * more; a second rejection is `no_session`. `endsAtMs` limits the wait for the token, and
   * `use` must honor it too. Throws the errors of `use` and `UpstreamTokens`.
   */
  show<T>(
    caller: AuthenticatedCaller,
    own: Secret,
    endsAtMs: MonotonicMs,
    use: (shown: SubjectToken) => Promise<T>,
  ): Promise<T>
}

/** The caller's own token, of any kind. */
const OWN: SubjectTokenSource = {
  keyParts: () => [],
  show({ claims: { iat } }, own, _endsAtMs, use) {
    return use({ token: own, expiresAtMs: Infinity, issuedAtMs: typeof iat === 'number' ? iat * 1_000 : undefined })
  },
}

/**
 * Whether callers of this issuer have an upstream token. Throws `no_session` when the config requires one and they
 * can't, and `no_upstream_session` or `no_user` for callers who can't get one by a login; a 401 would make clients
 * log in again.
 */
export function hasUpstreamToken(
  { issuer, claims }: Pick<AuthenticatedCaller, 'issuer' | 'claims'>,
  upstream: UpstreamUse,
): boolean {
  if (issuer === upstream.issuer) {
    const holder = holderWithoutLogin(claims)
    if (holder === undefined) return true
    throw new Failure(holder === 'person' ? 'no_upstream_session' : 'no_user', {
      detail: `the token was issued by grant ${JSON.stringify(claims[GRANT_CLAIM])} without a login at the upstream ${upstream.provider}`,
    })
  }
  if (!upstream.isExplicit) return false
  throw noSession("the caller did not log in at this route's authorization server")
}

/** Where tokens other than the caller's own come from; absent without an authorization server or connections. */
export interface SubjectTokenDeps {
  readonly upstreamTokens?: UpstreamTokens | undefined
  readonly connections?: ConnectedAccounts | undefined
}

/**
 * The subject token source of a config; `upstream` is its resolved provider. Throws `type_not_runnable` for a
 * provider without an authorization server that holds its tokens.
 */
export function createSubjectTokenSource(
  { named, upstream }: { readonly named: string | undefined; readonly upstream?: UpstreamUse | undefined },
  { upstreamTokens, connections }: SubjectTokenDeps,
): SubjectTokenSource {
  if (upstream === undefined && named === undefined) return OWN
  if (upstream === undefined) throw notHere()
  if (upstream.isConnection === true) return ofConnection(upstream, connections)
  const { provider, kind, issuer } = upstream
  if (upstreamTokens === undefined && issuer !== undefined) throw notHere()

  return {
    keyParts(caller) {
      if (!hasUpstreamToken(caller, upstream)) return OWN.keyParts(caller)
      const { tsid } = caller.claims
      if (typeof tsid !== 'string') throw noSession('the caller’s token has no session')
      return ['session', provider, tsid]
    },
    async show(caller, own, endsAtMs, use) {
      if (!hasUpstreamToken(caller, upstream) || upstreamTokens === undefined)
        return OWN.show(caller, own, endsAtMs, use)
      const first = await inTime(upstreamTokens.current(caller, provider, kind), endsAtMs)
      try {
        return await once(first, use)
      } catch (error) {
        const claims = demandOf(error)
        if (claims !== undefined) await inTime(upstreamTokens.demand(caller, provider, claims), endsAtMs)
        if (!isRefused(error)) throw error
        if (!(await inTime(upstreamTokens.reject(caller, provider, first), endsAtMs))) throw overFor(error)
      }
      const second = await inTime(upstreamTokens.current(caller, provider, kind), endsAtMs)
      return once(second, use).catch((error: unknown) => {
        throw isRefused(error) ? overFor(error) : error
      })
    },
  }
}

/** The token of the caller's connected account. */
function ofConnection({ provider, kind }: UpstreamUse, connections: ConnectedAccounts | undefined): SubjectTokenSource {
  if (connections === undefined) throw notHere()
  const ended = (error: unknown): Failure =>
    notConnected(provider, 'ended', asFailure(error).detail ?? asFailure(error).code)
  const current = (caller: AuthenticatedCaller, endsAtMs: MonotonicMs): Promise<UpstreamToken> =>
    inTime(Promise.resolve(connections.current(caller, provider, kind)), endsAtMs)
  return {
    keyParts: () => ['connection', provider],
    changing: {
      changingParts: (caller) => connections.keyParts(caller, provider),
      widen: (caller, scopes) => widened(connections, caller, provider, scopes),
    },
    async show(caller, _own, endsAtMs, use) {
      const first = await current(caller, endsAtMs)
      try {
        return await once(first, use)
      } catch (error) {
        if (FAILURES[asFailure(error).code].fault !== 'caller_token') throw error
        if (!isRefused(error) || !(await inTime(connections.reject(caller, provider, first), endsAtMs)))
          throw ended(error)
      }
      const second = await current(caller, endsAtMs)
      return once(second, use).catch((error: unknown) => {
        throw FAILURES[asFailure(error).code].fault === 'caller_token' ? ended(error) : error
      })
    },
  }
}

/** The issue time of the caller's token does not apply to this one. */
const once = async <T>({ token, expiresAtMs }: UpstreamToken, use: (shown: SubjectToken) => Promise<T>): Promise<T> =>
  use({ token, expiresAtMs: expiresAtMs ?? Infinity, issuedAtMs: jwtIssuedMs(token.reveal()) })

/** The refresh may have been started by another request, with its own deadline. */
const inTime = <T>(work: Promise<T>, endsAtMs: MonotonicMs): Promise<T> =>
  within(work, endsAtMs).catch((error: unknown) => {
    throw outboundFailure(error, serviceOf('token of the upstream'))
  })

/** Failures that no other token of the same login fixes. */
const ASKS_FOR_LOGIN: ReadonlySet<FailureCode> = new Set(['interaction_required', 'insufficient_user_authentication'])

/** Whether another token of the same login may help; other failures require a login. */
function isRefused(error: unknown): boolean {
  const { code } = asFailure(error)
  return FAILURES[code].fault === 'caller_token' && !ASKS_FOR_LOGIN.has(code)
}

/** The claims that a new login must request, from the service's error. */
function demandOf(error: unknown): string | undefined {
  const claims = asFailure(error).challenge?.stepUp?.claims
  return claims === undefined ? undefined : Buffer.from(claims, 'base64').toString()
}

/** The rejected token was not the caller's, and only a login gives another. */
const overFor = (error: unknown): Failure => noSession(asFailure(error).detail ?? asFailure(error).code)

const noSession = (detail: string): Failure =>
  new Failure('no_session', { detail, challenge: { error: 'invalid_token' } })

const notHere = (): Failure =>
  new Failure('type_not_runnable', { detail: 'upstream tokens require an embedded authorization server' })
