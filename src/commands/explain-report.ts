import { hashKey } from '../cache/index.ts'
import { createRoleMapper, decide, keyParts, type Decision } from '../obtain/index.ts'
import type { AuthSection, ResolvedAuth, ResolvedAuthOf, ResolvedRoute, RunnableType } from '../resources/index.ts'
import type { ExplainedCaller } from './explain-input.ts'

/** What `extauth explain` says; the JSON of `--output json`. */
export interface ExplainReport {
  readonly route: string
  readonly config: {
    readonly name: string
    readonly type: string
    readonly configHash: string
    readonly file: string
    readonly line: number
  }
  readonly why: string
  readonly caller: {
    readonly issuer: string
    readonly subject: string
    readonly format: string
    readonly signature: 'not checked'
  }
  /** What would stop this token before a role is chosen, as far as that can be told without network and keys. */
  readonly notes: readonly string[]
  /** Only for cloudSts. */
  readonly decision: Decision | undefined
  readonly headers: { readonly added: readonly string[]; readonly removed: readonly string[] }
  /** SHA-256 of each part of the cache key, base64url, and of all of them; only where a role was found. */
  readonly cacheKey: Readonly<Record<string, string>> | undefined
}

/** The headers of a caller that no backend gets (decisions §3.1); `*` stands for the rest of a name. */
const REMOVED = [
  'authorization',
  'proxy-authorization',
  'cookie',
  'x-amz-*',
  'x-amzn-oidc-*',
  'x-amzn-bedrock-agentcore-*-user-id',
  'x-forwarded-*',
  'x-auth-request-*',
  'any header whose value contains the access token',
]

/** Explains one request of one caller on one route; pure but for `nowMs`. Throws `Failure` for a matcher that is wrong. */
export function explain(
  route: ResolvedRoute,
  caller: ExplainedCaller,
  nowMs: number,
  options: { readonly all: boolean },
): ExplainReport {
  const { auth } = route
  const config = `${auth.namespace}/${auth.name}`
  const decision = auth.type === 'cloudSts' ? decisionOf(auth, route, caller, options) : undefined
  return {
    route: route.name,
    config: { name: config, type: auth.type, configHash: auth.configHash, ...auth.source },
    why: `route ${JSON.stringify(route.name)} (path ${route.path}) names it in externalAuthConfigRef`,
    caller: { issuer: caller.issuer, subject: caller.subject, format: caller.format, signature: 'not checked' },
    notes: notesOn(route.callers, caller, nowMs),
    decision,
    headers: { added: addedBy(auth), removed: REMOVED },
    cacheKey: decision === undefined ? undefined : cacheKeyOf(config, auth.configHash, caller, decision),
  }
}

function decisionOf(
  auth: ResolvedAuthOf<'cloudSts'>,
  { onMatcherError }: ResolvedRoute,
  caller: ExplainedCaller,
  options: { readonly all: boolean },
): Decision {
  const mapper = createRoleMapper(auth.spec, { onMatcherError })
  return decide(`${auth.namespace}/${auth.name}`, auth.spec, mapper, caller, options)
}

type Added = { readonly [T in RunnableType]: (auth: Extract<ResolvedAuth, { type: T }>) => readonly string[] }

/** What each type adds; the values are not read. */
const ADDED = {
  unauthenticated: () => [],
  headerInjection: ({ spec }) => [`${spec.headerName.toLowerCase()}: (the secret)`],
  bearerToken: () => ['authorization: Bearer (the secret)'],
  tokenExchange: ({ spec }) => [
    `${spec.externalTokenHeaderName?.toLowerCase() || 'authorization'}: Bearer (the exchanged token)`,
  ],
  cloudSts: ({ spec }) => [
    `authorization: AWS4-HMAC-SHA256 (${spec.region}/${spec.service})`,
    'x-amz-date',
    'x-amz-security-token',
    'x-amz-content-sha256',
  ],
} satisfies Added

function addedBy(auth: ResolvedAuth): readonly string[] {
  // The row of a type takes the config of that type; TypeScript can't follow one key through two unions.
  const row: (auth: never) => readonly string[] = ADDED[auth.type]
  return row(auth as never)
}

function notesOn(callers: AuthSection, { claims, issuer, format }: ExplainedCaller, nowMs: number): readonly string[] {
  if (callers.mode !== 'oauth' || format === 'opaque') return []
  const { providers } = callers.oauth
  const ofIssuer = providers.filter(({ issuerUrl }) => issuerUrl === issuer)
  const audiences = new Set([claims['aud'] ?? []].flat())
  const notes: string[] = []
  if (ofIssuer.length === 0)
    notes.push('no provider of this route has this issuer: the token would be refused with 401')
  else if (!ofIssuer.some(({ audience }) => audiences.has(audience)))
    notes.push('the audience is not the one of the provider: the token would be refused with 401')
  const { exp } = claims
  if (typeof exp !== 'number') notes.push('the claims have no exp: a JWT without it would be refused with 401')
  else if (exp * 1000 <= nowMs) notes.push('exp has passed: the token would be refused with 401')
  return notes
}

function cacheKeyOf(
  config: string,
  configHash: string,
  { issuer, subject, claims }: ExplainedCaller,
  { choice, session, refusal }: Decision,
): Readonly<Record<string, string>> | undefined {
  if (refusal !== undefined || choice.roleArn === undefined || session === undefined) return undefined
  const [role = '', sessionName = '', judged = ''] = keyParts(choice.roleArn, session.name, claims)
  const parts = { config, configHash, issuer, subject, role, sessionName, claims: judged }
  return Object.fromEntries(Object.entries(parts).map(([name, part]) => [name, hashKey([part])]))
}
