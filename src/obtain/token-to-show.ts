import {
  asFailure,
  Failure,
  FAILURES,
  type FailureCode,
  GRANT_CLAIM,
  holderWithoutLogin,
  type AuthenticatedCaller,
  type Secret,
  type UpstreamToken,
  type UpstreamTokens,
} from '../core/index.ts'
import { outboundFailure, within } from '../net/index.ts'
import { jwtIssuedMs, serviceOf } from '../oauth/index.ts'
import type { UpstreamUse } from '../resources/index.ts'

/** The token that is shown to a service to get a credential for a caller. */
export interface ShownToken {
  readonly token: Secret
  /** Milliseconds since the epoch; Infinity where nobody said. */
  readonly expiresAtMs: number
  /** The same of when it was issued; undefined where nobody said. */
  readonly issuedAtMs: number | undefined
}

/** Whose token is shown: the caller's own, or the one that an upstream provider gave at the caller's login here. */
export interface TokenToShow {
  /**
   * What tells credentials that were got with a session's token from others; empty for a caller whose own token is shown.
   * Throws `no_session` for a caller who can't have an upstream token.
   */
  keyParts(caller: AuthenticatedCaller): readonly string[]
  /**
   * Runs `use` with the token; `own` is the caller's own. Where a session's token is refused it is refreshed, and `use` runs once more; what is refused
   * then is `no_session`. The token is waited for until `endsAtMs` (`performance.now()`), which `use` has to hold as well. Throws
   * what `use` and `UpstreamTokens` throw.
   */
  show<T>(
    caller: AuthenticatedCaller,
    own: Secret,
    endsAtMs: number,
    use: (shown: ShownToken) => Promise<T>,
  ): Promise<T>
}

/** A caller's own token, of any kind. */
const OWN: TokenToShow = {
  keyParts: () => [],
  show({ claims: { iat } }, own, _endsAtMs, use) {
    return use({ token: own, expiresAtMs: Infinity, issuedAtMs: typeof iat === 'number' ? iat * 1_000 : undefined })
  },
}

/**
 * Whether callers of this issuer have a token there. Throws `no_session` where the config wants one and they can't, and
 * `no_upstream_session` or `no_user` for callers of that server whom no login brings one: no 401, which makes clients log in again.
 */
export function hasUpstreamToken(
  { issuer, claims }: Pick<AuthenticatedCaller, 'issuer' | 'claims'>,
  upstream: UpstreamUse,
): boolean {
  if (issuer === upstream.issuer) {
    const holder = holderWithoutLogin(claims)
    if (holder === undefined) return true
    throw new Failure(holder === 'person' ? 'no_upstream_session' : 'no_user', {
      detail: `the token came of the grant ${JSON.stringify(claims[GRANT_CLAIM])}, the upstream ${upstream.provider} was never visited`,
    })
  }
  if (!upstream.isExplicit) return false
  throw noSession('the caller did not log in at the authorization server of this route')
}

/**
 * The token that a config shows: `upstream` is what the provider that it names came to. Throws `type_not_runnable` for a provider
 * without an authorization server that holds its tokens.
 */
export function createTokenToShow(
  { named, upstream }: { readonly named: string | undefined; readonly upstream?: UpstreamUse | undefined },
  upstreamTokens: UpstreamTokens | undefined,
): TokenToShow {
  if (upstream === undefined && named === undefined) return OWN
  if (upstream === undefined) throw notHere()
  const { provider, kind, issuer } = upstream
  if (upstreamTokens === undefined && issuer !== undefined) throw notHere()

  // When the caller's own was issued says nothing about this one.
  const once = async <T>({ token, expiresAtMs }: UpstreamToken, use: (shown: ShownToken) => Promise<T>): Promise<T> =>
    use({ token, expiresAtMs: expiresAtMs ?? Infinity, issuedAtMs: jwtIssuedMs(token.reveal()) })

  return {
    keyParts(caller) {
      if (!hasUpstreamToken(caller, upstream)) return OWN.keyParts(caller)
      const { tsid } = caller.claims
      if (typeof tsid !== 'string') throw noSession('the caller’s token names no session')
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

/** Its refresh may have begun for somebody else, and has a deadline of its own. */
const inTime = <T>(work: Promise<T>, endsAtMs: number): Promise<T> =>
  within(work, endsAtMs).catch((error: unknown) => {
    throw outboundFailure(error, serviceOf('token of the upstream'))
  })

/** No other token of the same login mends these. */
const ASKS_FOR_LOGIN: ReadonlySet<FailureCode> = new Set(['interaction_required', 'insufficient_user_authentication'])

/** Another token of the same login would do; who has to log in otherwise is told so. */
function isRefused(error: unknown): boolean {
  const { code } = asFailure(error)
  return FAILURES[code].fault === 'caller_token' && !ASKS_FOR_LOGIN.has(code)
}

/** What a new login has to ask for, as the service says. */
function demandOf(error: unknown): string | undefined {
  const claims = asFailure(error).challenge?.stepUp?.claims
  return claims === undefined ? undefined : Buffer.from(claims, 'base64').toString()
}

/** It was not the caller's token that was refused, and only a login brings another. */
const overFor = (error: unknown): Failure => noSession(asFailure(error).detail ?? asFailure(error).code)

const noSession = (detail: string): Failure =>
  new Failure('no_session', { detail, challenge: { error: 'invalid_token' } })

const notHere = (): Failure =>
  new Failure('type_not_runnable', { detail: 'upstream tokens need an embedded authorization server' })
