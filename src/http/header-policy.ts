import { type DropRule, gatewayHeaderOf, plainHeaderName } from '../core/index.ts'
import { connectionNames, HOP_BY_HOP } from './hop-by-hop.ts'
import { withoutTokens } from './subprotocols.ts'

/** What is left of a request's headers for the backend, and what only the authenticator may see. */
export interface RequestHeaders {
  /** Flat list (name, value, …), names in lower case, in the order in which they came. */
  readonly headers: string[]
  /** Values of the `Authorization` header lines. */
  readonly authorization: string[]
}

/** Told of each header line that is left out, by its lower-case name. */
export type OnDrop = (name: string, rule: DropRule) => void

type Action = 'forward' | 'drop' | 'authorization' | 'connection' | 'subprotocols'

interface Rule {
  readonly name: string
  readonly action: Action
  /** Why the header is left out, where it is or may be. */
  readonly because: DropRule
}

/** Who asked and from where is said by us, and what is asked for by the path; a caller's word for it is worth nothing. */
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
 * Of `X-Amz-*` those that sign a request or name somebody (decisions §3.1): of SigV4 and SigV4a in headers and queries, of
 * bodies that are signed in pieces, and tokens beside them. The others carry meaning, and are signed where we sign.
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
 * Never forwarded, each with its reason. Names are compared with everything but letters and digits read as `-`, because
 * that is how gateways that turn headers into variables read them (`X_Api_Key` is `X-Api-Key` to them).
 */
const DROPPED: ReadonlyMap<string, DropRule> = new Map<string, DropRule>([
  // Between two neighbours only (RFC 9110 §7.6.1).
  ...HOP_BY_HOP.map((name) => [name, 'hop_by_hop'] as const),
  // The framing is made anew with the body; `Expect` is ours to answer (RFC 9110 §10.1.1), the backend would answer it a
  // second time; the target's own host is sent (decisions §7).
  ...['content-length', 'expect', 'host'].map((name) => [name, 'regenerated'] as const),
  // Credentials of the caller (decisions §3.1).
  ...['proxy-authorization', 'cookie', 'cookie2'].map((name) => [name, 'caller_credential'] as const),
  ...AMZ_CREDENTIALS.map((name) => [name, 'caller_credential'] as const),
  ...UNTRUSTED.map((name) => [name, 'untrusted'] as const),
])

/** The same, by how the name begins. `x-forwarded-` covers X-Forwarded-Access-Token, -User and -Email (decisions §3.1). */
const DROPPED_PREFIXES: readonly (readonly [string, DropRule])[] = [
  ['x-forwarded-', 'untrusted'],
  ['x-auth-request-', 'caller_credential'],
]

/**
 * Read by their exact name here and in signatures; under another spelling they would reach the backend as the caller wrote
 * them, unbound and unsigned.
 */
const EXACT = /^(?:mcp-session-id$|x-amz-)/

const AGENT_CORE_USER = /^x-amzn-bedrock-agentcore-(?:.+-)?user-id$/

/** Names that are remembered per policy; beyond it the memory starts anew, so that random names cost time, not space. */
const MAX_REMEMBERED = 1024
const MAX_REMEMBERED_LENGTH = 64

/** Shorter credentials are looked for in values only. */
const MIN_LENGTH_IN_NAME = 16

/**
 * A function that reads a request's header lines in one pass and gives what may be forwarded (decisions §3.1):
 * hop-by-hop headers and those named in `Connection`, the caller's credentials, what gateways say about the caller,
 * forwarding headers and every copy of a header that we set (`ownedNames`, lower case) are out, and so is each header that
 * contains the raw credentials of an `Authorization` line. Made once per route.
 * @param passed identity headers of gateways that pass all the same (`routes[].passHeaders`), spelled as named; tokens never do
 */
export function createHeaderPolicy(
  ownedNames: readonly string[],
  passed: readonly string[] = [],
): (rawHeaders: readonly string[], onDrop?: OnDrop) => RequestHeaders {
  const owned = new Set(ownedNames.map(plainHeaderName))
  const passing = new Set(passed.map((name) => name.toLowerCase()))
  const remembered = new Map<string, Rule>()

  const learn = (raw: string): Rule => {
    const rule = ruleFor(raw.toLowerCase(), owned, passing)
    if (raw.length <= MAX_REMEMBERED_LENGTH) {
      if (remembered.size >= MAX_REMEMBERED) remembered.clear()
      remembered.set(raw, rule)
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
      const rule = remembered.get(raw) ?? learn(raw)
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
 * The raw credentials of an `Authorization` value: what follows the scheme, or all of it when there is no scheme.
 * Empty when there are none.
 */
export function credentialsOf(authorization: string): string {
  const trimmed = authorization.trim()
  const space = trimmed.search(/[ \t]/)
  return space === -1 ? trimmed : trimmed.slice(space).trim()
}

function ruleFor(name: string, owned: ReadonlySet<string>, passing: ReadonlySet<string>): Rule {
  const plain = plainHeaderName(name)
  const drop = (because: DropRule): Rule => ({ name, action: 'drop', because })
  // Before everything else, also when it is ours to set: the authenticator needs the caller's.
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
  // Browsers can set no other header on a WebSocket, so tokens are put there.
  if (plain === 'sec-websocket-protocol') return { name, action: 'subprotocols', because: 'caller_credential' }
  return { name, action: 'forward', because: 'caller_credential' }
}

function addSubprotocols(headers: string[], { name, because }: Rule, value: string, onDrop: OnDrop | undefined): void {
  const kept = withoutTokens(value)
  if (kept !== value) onDrop?.(name, because)
  if (kept !== '') headers.push(name, kept)
}

/** Names have been made lower-case, so that a token in one is compared in lower case; a short one is there by chance. */
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
