import { refuseBoundToken } from '../../authenticate/index.ts'
import { shapeOf } from '../../oauth/index.ts'
import { type AuthenticatedCaller, type Claims, type EpochMs, scopesOf, Secret } from '../../core/index.ts'
import type { ResolvedRoute } from '../../resources/index.ts'
import type { CheckContext } from './context.ts'
import { about, type CheckResult } from './result.ts'

/** Result of authenticating `--token-file` on a route. */
export interface CheckedCaller {
  readonly lines: readonly CheckResult[]
  /** Undefined without a token, or if the route rejects it. */
  readonly caller: AuthenticatedCaller | undefined
}

/** Authenticates the caller on a route with the authenticator that requests use. */
export function checkCaller(route: ResolvedRoute, context: CheckContext): Promise<CheckedCaller> {
  const { callers, requiredScopes, allowBoundTokens } = route
  return context.once(JSON.stringify(['caller', callers, requiredScopes, allowBoundTokens]), () =>
    judge(route, context),
  )
}

async function judge(route: ResolvedRoute, context: CheckContext): Promise<CheckedCaller> {
  const { callers, requiredScopes, allowBoundTokens } = route
  const { token } = context
  const line = about('token', '--token-file')
  if (callers.mode === 'anonymous') return { lines: [], caller: undefined }
  if (token === undefined) return { lines: [line.skipped('no --token-file')], caller: undefined }
  if (!context.isOneRoute && isForOthers(token, route))
    return { lines: [line.skipped('the token of --token-file is from a different issuer')], caller: undefined }
  try {
    const caller = await context.authenticators.get(callers).authenticate([`Bearer ${token.reveal()}`], '')
    if (caller.kind === 'anonymous') return { lines: [], caller: undefined }
    if (!allowBoundTokens) refuseBoundToken(caller)
    const granted = scopesOf(caller)
    const missing = requiredScopes.filter((scope) => !granted.has(scope))
    if (missing.length > 0) {
      const remedy = 'Request a token with these scopes, or remove them from requiredScopes.'
      return { lines: [line.failed(`the token lacks the scopes ${missing.join(' ')}`, remedy)], caller: undefined }
    }
    return { lines: [line.ok(`accepted by ${caller.provider} as ${caller.subject || caller.identity}`)], caller }
  } catch (error) {
    return { lines: [line.thrown(error)], caller: undefined }
  }
}

/**
 * Whether no provider of the route has the issuer of this JWT. With several routes, it is meant for a different one.
 */
function isForOthers(token: Secret, { callers }: ResolvedRoute): boolean {
  const shape = shapeOf(token.reveal())
  if (shape.kind !== 'jwt' || callers.mode === 'anonymous') return false
  return !callers.oauth.providers.some(({ issuerUrl }) => issuerUrl === shape.jwt.payload['iss'])
}

const INVALID = `extauth-check-${'0'.repeat(32)}`

/** A token that no service issued. */
export const INVALID_TOKEN = new Secret(INVALID)

/** A caller with an invalid token, to test whether a service accepts the proxy as its client. */
export function unknownCaller(nowMs: EpochMs, claims: Claims = {}): AuthenticatedCaller {
  return {
    kind: 'authenticated',
    provider: '',
    issuer: '',
    subject: INVALID,
    identity: `sub:${INVALID}`,
    // Types that act for users require a user's permission before they call the service.
    claims: Object.freeze(Object.assign(Object.create(null) as Record<string, string>, { scp: INVALID }, claims)),
    expiresAtMs: nowMs + 60_000,
    tokenDigest: INVALID_TOKEN.digest(),
    format: 'jwt',
  }
}
