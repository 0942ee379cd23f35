import { hashKey } from '../../cache/index.ts'
import { eventTypeOf } from '../../audit/index.ts'
import {
  type AuditEventType,
  type Claims,
  type EpochMs,
  FAILURES,
  GATEWAY_HEADERS,
  type McpView,
  type RequestView,
  type RuleDecision,
  scopesOf,
} from '../../core/index.ts'
import { AMZ_CREDENTIALS, UNTRUSTED } from '../../http/index.ts'
import { createRoleMapper, decide, keyParts, type Decision, type RoleRequest } from '../../obtain/cloud-sts/index.ts'
import { refusedByToken } from '../../obtain/index.ts'
import {
  type AuditSettings,
  authsOf,
  cacheKeyOf,
  type ResolvedConnections,
  credentialOf,
  hasRoles,
  forwardedNames,
  recordedEvents,
  headersSetBy,
  type RoleType,
  type OAuthSection,
  type ResolvedAuth,
  type ResolvedAuthOf,
  type ResolvedRoute,
  chainOf,
  type StsSource,
} from '../../resources/index.ts'
import type { ExplainedCaller } from './explain-input.ts'
import { connectionFor, connectionNotes, type ExplainedConnection } from './explained-connection.ts'
import { credentialFor, decideRules } from './request-rules.ts'

/** `cloudSts.source` with its defaults. */
export interface ExplainedSource {
  readonly type: StsSource['type']
  /** Sources of the process identity; not with `callerToken`. */
  readonly chain?: readonly string[]
  readonly profile?: string
  /** The role of the first hop. */
  readonly hub?: string
}

/** The event of a request in the audit trail. */
export interface ExplainedEvent {
  readonly type: AuditEventType
  /** False if `events` or `exclude` leaves it out. */
  readonly isRecorded: boolean
  readonly file: string
  readonly format: AuditSettings['format']
}

/** Result of `extauth explain`: the JSON of `--output json`. */
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
  /** Reasons to reject this token before a role is chosen, as far as known without network and keys. */
  readonly notes: readonly string[]
  /** The identity for STS; only with type `cloudSts`. */
  readonly source: ExplainedSource | undefined
  /** Set only if rules choose a role. */
  readonly decision: Decision | undefined
  /** The connected account; only if the config uses one. */
  readonly connection: ExplainedConnection | undefined
  /** What was asked for, and what the rules of the route decide; only with a request, on a route with rules. */
  readonly request: { readonly mcp: McpView; readonly rules: RuleDecision | undefined } | undefined
  /** The event that the audit trail gets; only with a request, where one is kept. */
  readonly audit: ExplainedEvent | undefined
  readonly headers: { readonly added: readonly string[]; readonly removed: readonly string[] }
  /** SHA-256 of each known part of the cache key, base64url; only if a credential is fetched. */
  readonly cacheKey: Readonly<Record<string, string>> | undefined
}

/** Headers of a caller that no backend receives (decisions §3.1); `*` matches the rest of a name. */
export const REMOVED = [
  'authorization',
  'proxy-authorization',
  'cookie',
  'any entry of sec-websocket-protocol that carries a token',
  ...UNTRUSTED,
  ...AMZ_CREDENTIALS,
  ...GATEWAY_HEADERS.map(({ name }) => name),
  'x-amzn-bedrock-agentcore-*-user-id',
  'x-forwarded-*',
  'x-auth-request-*',
  'any header whose value contains the access token',
]

/** Headers about the origin of a request, for every backend. */
const ALWAYS_ADDED = ['via', 'forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto']

/**
 * Explains one request of one caller on one route. Pure, except for `nowMs`. Throws `Failure` for an invalid matcher.
 */
export function explain(
  route: ResolvedRoute,
  caller: ExplainedCaller,
  nowMs: EpochMs,
  options: {
    readonly all: boolean
    readonly request?: RequestView | undefined
    readonly audit?: AuditSettings | undefined
    readonly connections?: ResolvedConnections | undefined
  },
): ExplainReport {
  const { request, audit } = options
  const { auth, entry } = credentialFor(route, request, caller.claims)
  const config = `${auth.namespace}/${auth.name}`
  const decision = hasRoles(auth)
    ? decideFor(auth, route.onMatcherError, caller, {
        ...options,
        request: request && { mcp: request.mcp, route: route.name },
      })
    : undefined
  const connection = connectionFor(auth, route, caller, options.connections?.spec)
  return {
    route: route.name,
    config: { name: config, type: auth.type, configHash: auth.configHash, ...auth.source },
    why: `route ${JSON.stringify(route.name)} (path ${route.path}) names it in ${entry === undefined ? '' : `credentials[${entry - 1}].`}externalAuthConfigRef`,
    caller: { issuer: caller.issuer, subject: caller.subject, format: caller.format, signature: 'not checked' },
    notes: [
      ...notesOn(route, caller, nowMs),
      ...notesOfType({ auth, callers: route.callers }, caller),
      ...(connection === undefined ? [] : connectionNotes(connection)),
    ],
    source: auth.type === 'cloudSts' ? sourceOf(auth.spec.source) : undefined,
    decision,
    connection,
    request: request && { mcp: request.mcp, rules: decideRules(route, request, caller.claims, options) },
    audit: request && audit && eventOf(request, audit),
    headers: headersOf(auth, route),
    cacheKey: keyOf(config, auth, caller, decision),
  }
}

function eventOf({ mcp }: RequestView, audit: AuditSettings): ExplainedEvent {
  const type = eventTypeOf(mcp)
  return { type, isRecorded: recordedEvents(audit).has(type), file: audit.file, format: audit.format }
}

function sourceOf(source: StsSource = { type: 'callerToken' }): ExplainedSource {
  const { type, through } = source
  if (type === 'callerToken') return { type }
  const ambient = through?.source ?? source
  const { profile } = ambient
  return {
    type,
    chain: chainOf(ambient),
    ...(profile === undefined ? {} : { profile }),
    ...(through === undefined ? {} : { hub: through.roleArn }),
  }
}

/** Client copies of added headers are removed first. */
function headersOf(auth: ResolvedAuth, route: ResolvedRoute): ExplainReport['headers'] {
  const { passHeaders, headerForward } = route
  const passed = new Set(passHeaders.map((name) => name.toLowerCase()))
  const sets = headersSetBy(auth)
  const forwarded = forwardedNames(headerForward)
  const added = sets.map(({ name, shown }) => (shown === undefined ? name : `${name}: ${shown}`))
  const owned = [...authsOf(route).flatMap((one) => headersSetBy(one).map(({ name }) => name)), ...forwarded]
  return {
    added: [...added, ...forwarded.map((name) => `${name}: (headerForward)`), ...ALWAYS_ADDED],
    removed: [...new Set([...REMOVED.filter((name) => !passed.has(name)), ...owned])],
  }
}

/** Decides as the proxy does. Throws `config_error` for an invalid matcher. */
export function decideFor(
  auth: ResolvedAuthOf<RoleType>,
  onMatcherError: ResolvedRoute['onMatcherError'],
  caller: ExplainedCaller,
  options: { readonly all: boolean; readonly request?: RoleRequest | undefined },
): Decision {
  const mapper = createRoleMapper(auth.spec, { onMatcherError })
  return decide(`${auth.namespace}/${auth.name}`, auth.spec, mapper, caller, options)
}

/** Reasons to reject the token of this caller before a role is chosen. */
export function notesOn(
  {
    callers,
    authServer,
    requiredScopes,
    allowBoundTokens,
  }: Pick<ResolvedRoute, 'callers' | 'authServer' | 'requiredScopes' | 'allowBoundTokens'>,
  { claims, issuer, identity, format, tokenDigest }: ExplainedCaller,
  nowMs: EpochMs,
): readonly string[] {
  if (callers.mode !== 'oauth' || format === 'opaque') return []
  const notes: string[] = []
  // Tokens of the route's authorization server are verified with its own keys.
  if (issuer !== authServer?.server.spec.issuer) notes.push(...providerNotes(callers, issuer, claims))
  if (tokenDigest === undefined && identity.startsWith('token:'))
    notes.push('the claims have no sub and no sid: each token counts as a different caller')
  const { exp } = claims
  if (typeof exp !== 'number') notes.push('the claims have no exp: a JWT without it is rejected with 401')
  else if (exp * 1000 <= nowMs) notes.push('the token is expired (exp): rejected with 401')
  if (!allowBoundTokens && claims['cnf'] !== undefined)
    notes.push('the token is bound to a key (cnf), and the route does not set allowBoundTokens: rejected with 401')
  const granted = scopesOf({ claims })
  const missing = requiredScopes.filter((scope) => !granted.has(scope))
  if (missing.length > 0) notes.push(`the token lacks required scopes (${missing.join(' ')}): rejected with 403`)
  return notes
}

/** Reasons to reject it because of the type of credential. */
function notesOfType(
  { auth, callers }: Pick<ResolvedRoute, 'auth' | 'callers'>,
  caller: ExplainedCaller,
): readonly string[] {
  // The claims of an opaque token are known only after introspection.
  if (callers.mode !== 'oauth' || caller.format === 'opaque') return []
  const refusal = refusedByToken(auth, caller)
  if (refusal === undefined) return []
  return [`rejected with ${FAILURES[refusal.code].status} ${refusal.code}: ${refusal.detail ?? ''}`]
}

function providerNotes(callers: OAuthSection, issuer: string, claims: Claims): readonly string[] {
  const ofIssuer = callers.oauth.providers.filter(({ issuerUrl }) => issuerUrl === issuer)
  const ofAudience = ofIssuer.filter(({ audience, audienceClaim }) =>
    [claims[audienceClaim] ?? []].flat().includes(audience),
  )
  if (ofIssuer.length === 0) return ['no provider of this route has this issuer: rejected with 401']
  if (ofAudience.length === 0) return ['the audience is not that of the provider: rejected with 401']
  return ofAudience.some(({ subject }) => subject === undefined || subject === claims['sub'])
    ? []
    : ['the provider does not accept this subject: rejected with 401']
}

function keyOf(
  config: string,
  auth: ResolvedAuth,
  caller: ExplainedCaller,
  decision: Decision | undefined,
): Readonly<Record<string, string>> | undefined {
  const own = cacheKeyOf(auth)
  if (own === undefined) return undefined
  const ofConfig = { config, configHash: auth.configHash, ...own }
  const parts = credentialOf(auth) === 'caller' ? callerParts(ofConfig, caller, decision) : ofConfig
  if (parts === undefined) return undefined
  return Object.fromEntries(Object.entries(parts).map(([name, part]) => [name, hashKey([part])]))
}

/** The key parts of the caller; undefined if no credential is fetched. */
function callerParts(
  { config, configHash, ...own }: Readonly<Record<'config' | 'configHash', string>>,
  caller: ExplainedCaller,
  decision: Decision | undefined,
): Readonly<Record<string, string>> | undefined {
  const { issuer, identity, format, tokenDigest } = caller
  // The subject of an opaque token is known only after introspection.
  if (format === 'opaque') return undefined
  const shared = { config, configHash, issuer, identity, ...own }
  if (decision === undefined) return { ...shared, ...(tokenDigest === undefined ? {} : { subjectToken: tokenDigest }) }
  const role = roleParts(decision, caller)
  return role === undefined ? undefined : { ...shared, ...role }
}

function roleParts({ choice, session, refusal }: Decision, { claims }: ExplainedCaller) {
  if (refusal !== undefined || choice.roleArn === undefined || session === undefined) return undefined
  const { roleArn, attributes } = choice
  const [role = '', sessionName = '', judged = '', made = ''] = keyParts(roleArn, session.name, claims, attributes)
  return { role, sessionName, claims: judged, ...(attributes === undefined ? {} : { attributes: made }) }
}
