import { refuseBoundToken } from '../../authenticate/index.ts'
import { shapeOf } from '../../oauth/index.ts'
import { type AuthenticatedCaller, type Claims, scopesOf, Secret } from '../../core/index.ts'
import type { ResolvedRoute } from '../../resources/index.ts'
import type { CheckContext } from './context.ts'
import { about, type CheckResult } from './result.ts'

/** What a route makes of the token of `--token-file`. */
export interface CheckedCaller {
  readonly lines: readonly CheckResult[]
  /** Undefined where there is no token, or the route does not take it. */
  readonly caller: AuthenticatedCaller | undefined
}

/** Who the caller is on a route, by the verification that requests go through. */
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
    return { lines: [line.skipped('the token of --token-file is of another issuer')], caller: undefined }
  try {
    const caller = await context.authenticators.get(callers).authenticate([`Bearer ${token.reveal()}`], '')
    if (caller.kind === 'anonymous') return { lines: [], caller: undefined }
    if (!allowBoundTokens) refuseBoundToken(caller)
    const granted = scopesOf(caller)
    const missing = requiredScopes.filter((scope) => !granted.has(scope))
    if (missing.length > 0) {
      const remedy = 'Ask for a token with them, or take them out of requiredScopes.'
      return { lines: [line.failed(`it lacks the scopes ${missing.join(' ')}`, remedy)], caller: undefined }
    }
    return { lines: [line.ok(`accepted by ${caller.provider} as ${caller.subject || caller.identity}`)], caller }
  } catch (error) {
    return { lines: [line.thrown(error)], caller: undefined }
  }
}

/** A JWT whose issuer no provider of the route has: with several routes, it was not meant for this one. */
function isForOthers(token: Secret, { callers }: ResolvedRoute): boolean {
  const shape = shapeOf(token.reveal())
  if (shape.kind !== 'jwt' || callers.mode === 'anonymous') return false
  return !callers.oauth.providers.some(({ issuerUrl }) => issuerUrl === shape.jwt.payload['iss'])
}

const NOBODY = `extauth-check-${'0'.repeat(32)}`

/** What nobody shows. */
export const NOBODYS_TOKEN = new Secret(NOBODY)

/** A caller with a token that no service can know, to see whether a service takes us for its client. */
export function nobody(nowMs: number, claims: Claims = {}): AuthenticatedCaller {
  return {
    kind: 'authenticated',
    provider: '',
    issuer: '',
    subject: NOBODY,
    identity: `sub:${NOBODY}`,
    // Types that act for people look for permissions of a person before they ask.
    claims: Object.freeze(Object.assign(Object.create(null) as Record<string, string>, { scp: NOBODY }, claims)),
    expiresAtMs: nowMs + 60_000,
    tokenDigest: NOBODYS_TOKEN.digest(),
    format: 'jwt',
  }
}
