import { type DropRule, gatewayHeaderOf, plainHeaderName } from '../core/index.ts'
import { connectionNames, HOP_BY_HOP } from './hop-by-hop.ts'
import { withoutTokens } from './subprotocols.ts'

/** The request headers for the backend, and those for the authenticator alone. */
export interface RequestHeaders {
  /** Flat list (name, value, …), names in lower case, in their original order. */
  readonly headers: string[]
  /** Values of the `Authorization` header lines. */
  readonly authorization: string[]
}

/** Called with the lower-case name of each dropped header line. */
export type OnDrop = (name: string, rule: DropRule) => void

type Action = 'forward' | 'drop' | 'authorization' | 'connection' | 'subprotocols'

interface Rule {
  readonly name: string
  readonly action: Action
  /** Why the header is or may be dropped. */
  readonly because: DropRule
}

/** The proxy itself describes the client and the requested path; the caller's values are not trusted. */
export const UNTRUSTED: readonly string[] = [
  'forwarded',
  'x-real-ip',
  'x-client-ip',
  'x-cluster-client-ip',
  'true-client-ip',
  'cf-connecting-ip',
  'cf-connecting-ipv6',
  'fastly-client-ip',
  'x-original-url',
  'x-original-uri',
  'x-original-host',
  'x-rewrite-url',
]

/**
 * Those of `X-Amz-*` that sign a request or carry an identity (decisions §3.1): SigV4 and SigV4a in headers and
 * queries, chunked signing of bodies, and session tokens. The others are forwarded, and signed where the proxy signs.
 */
export const AMZ_CREDENTIALS: readonly string[] = [
  'x-amz-date',
  'x-amz-security-token',
  'x-amz-content-sha256',
  'x-amz-algorithm',
  'x-amz-credential',
  'x-amz-signature',
  'x-amz-signedheaders',
  'x-amz-signed-headers',
  'x-amz-expires',
  'x-amz-region-set',
  'x-amz-s3session-token',
  'x-amz-access-token',
  'x-amz-decoded-content-length',
  'x-amz-trailer',
]

/**
 * Never forwarded, each with its reason. Names are compared with every character except letters and digits read as
 * `-`: gateways that map headers to variables do the same (`X_Api_Key` is `X-Api-Key` to them).
 */
const DROPPED: ReadonlyMap<string, DropRule> = new Map<string, DropRule>([
  // Hop-by-hop only (RFC 9110 §7.6.1).
  ...HOP_BY_HOP.map((name) => [name, 'hop_by_hop'] as const),
  // Framing is generated with the body; the proxy itself answers `Expect` (RFC 9110 §10.1.1); the target's own host
  // is sent (decisions §7).
  ...['content-length', 'expect', 'host'].map((name) => [name, 'regenerated'] as const),
  // Credentials of the caller (decisions §3.1).
  ...['proxy-authorization', 'cookie', 'cookie2'].map((name) => [name, 'caller_credential'] as const),
  ...AMZ_CREDENTIALS.map((name) => [name, 'caller_credential'] as const),
  ...UNTRUSTED.map((name) => [name, 'untrusted'] as const),
])

/** The same, by prefix. `x-forwarded-` includes X-Forwarded-Access-Token, -User and -Email (decisions §3.1). */
const DROPPED_PREFIXES: readonly (readonly [string, DropRule])[] = [
  ['x-forwarded-', 'untrusted'],
  ['x-auth-request-', 'caller_credential'],
]

/**
 * Read by their exact name here and in signatures; with another spelling they would reach the backend unchanged,
 * unbound and unsigned.
 */
const EXACT = /^(?:mcp-session-id$|x-amz-)/

const AGENT_CORE_USER = /^x-amzn-bedrock-agentcore-(?:.+-)?user-id$/

/** Maximum cached names per policy; then the cache is cleared, so random names cost time instead of memory. */
const MAX_CACHED_NAMES = 1024
const MAX_CACHED_NAMES_LENGTH = 64

/** Shorter credentials are searched only in values. */
const MIN_LENGTH_IN_NAME = 16

/**
 * Returns a function that reads a request's header lines in one pass and returns those to forward (decisions §3.1).
 * Dropped: hop-by-hop headers and those named in `Connection`, the caller's credentials, identity headers of
 * gateways, forwarding headers, headers that the proxy sets (`ownedNames`, lower case), and every header that
 * contains the raw credentials of an `Authorization` line. Created once per route. `passed` are identity headers of
 * gateways that are forwarded all the same (`routes[].passHeaders`), spelled as named; tokens never are.
 */
export function createHeaderPolicy(
  ownedNames: readonly string[],
  passed: readonly string[] = [],
): (rawHeaders: readonly string[], onDrop?: OnDrop) => RequestHeaders {
  const owned = new Set(ownedNames.map(plainHeaderName))
  const passing = new Set(passed.map((name) => name.toLowerCase()))
  const cachedRules = new Map<string, Rule>()

  const learn = (raw: string): Rule => {
    const rule = ruleFor(raw.toLowerCase(), owned, passing)
    if (raw.length <= MAX_CACHED_NAMES_LENGTH) {
      if (cachedRules.size >= MAX_CACHED_NAMES) cachedRules.clear()
      cachedRules.set(raw, rule)
    }
    return rule
  }

  return (rawHeaders, onDrop) => {
    let headers: string[] = []
    const authorization: string[] = []
    let named: Set<string> | undefined
    for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
      const raw = rawHeaders[index] ?? ''
      const value = rawHeaders[index + 1] ?? ''
      const rule = cachedRules.get(raw) ?? learn(raw)
      if (rule.action === 'forward') headers.push(rule.name, value)
      else if (rule.action === 'subprotocols') addSubprotocols(headers, rule, value, onDrop)
      else {
        if (rule.action === 'authorization') authorization.push(value)
        else if (rule.action === 'connection') named = connectionNames(value, named)
        onDrop?.(rule.name, rule.because)
      }
    }
    if (named !== undefined) headers = without(headers, (name) => named.has(name), 'hop_by_hop', onDrop)
    for (const value of authorization) headers = withoutCredentials(headers, credentialsOf(value), onDrop)
    return { headers, authorization }
  }
}

/**
 * The raw credentials of an `Authorization` value: the part after the scheme, or everything without a scheme. Empty
 * if there are none.
 */
export function credentialsOf(authorization: string): string {
  const trimmed = authorization.trim()
  const space = trimmed.search(/[ \t]/)
  return space === -1 ? trimmed : trimmed.slice(space).trim()
}

function ruleFor(name: string, owned: ReadonlySet<string>, passing: ReadonlySet<string>): Rule {
  const plain = plainHeaderName(name)
  const drop = (because: DropRule): Rule => ({ name, action: 'drop', because })
  // First, even if the proxy sets it: the authenticator needs the caller's value.
  if (plain === 'authorization') return { name, action: 'authorization', because: 'caller_credential' }
  if (plain === 'connection') return { name, action: 'connection', because: 'hop_by_hop' }
  const because = DROPPED.get(plain)
  if (because !== undefined) return drop(because)
  if (owned.has(plain)) return drop('set_by_route')
  if (AGENT_CORE_USER.test(plain)) return drop('caller_credential')
  const gateway = gatewayHeaderOf(plain)
  if (gateway?.kind === 'token') return drop('caller_credential')
  if (gateway !== undefined && !passing.has(name)) return drop('untrusted')
  const prefix = DROPPED_PREFIXES.find(([beginning]) => plain.startsWith(beginning))
  if (prefix !== undefined) return drop(prefix[1])
  if (plain !== name && EXACT.test(plain)) return drop('other_spelling')
  // Browsers can set no other header on a WebSocket, so clients send tokens in it.
  if (plain === 'sec-websocket-protocol') return { name, action: 'subprotocols', because: 'caller_credential' }
  return { name, action: 'forward', because: 'caller_credential' }
}

function addSubprotocols(headers: string[], { name, because }: Rule, value: string, onDrop: OnDrop | undefined): void {
  const kept = withoutTokens(value)
  if (kept !== value) onDrop?.(name, because)
  if (kept !== '') headers.push(name, kept)
}

/** Names are lower case, so tokens in names are compared in lower case; a short one may match by chance. */
function withoutCredentials(headers: string[], credentials: string, onDrop: OnDrop | undefined): string[] {
  if (credentials === '') return headers
  const shortest = Math.max(MIN_LENGTH_IN_NAME, credentials.length)
  const holds = (name: string, value: string): boolean =>
    (value.length >= credentials.length && value.includes(credentials)) ||
    (name.length >= shortest && name.includes(credentials.toLowerCase()))
  for (let index = 0; index + 1 < headers.length; index += 2) {
    if (holds(headers[index] ?? '', headers[index + 1] ?? ''))
      return without(headers, holds, 'caller_credential', onDrop)
  }
  return headers
}

function without(
  headers: readonly string[],
  drops: (name: string, value: string) => boolean,
  because: DropRule,
  onDrop: OnDrop | undefined,
): string[] {
  const kept: string[] = []
  for (let index = 0; index + 1 < headers.length; index += 2) {
    const name = headers[index] ?? ''
    const value = headers[index + 1] ?? ''
    if (drops(name, value)) onDrop?.(name, because)
    else kept.push(name, value)
  }
  return kept
}
