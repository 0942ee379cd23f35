import { connectionNames, HOP_BY_HOP } from './hop-by-hop.ts'

/** What is left of a request's headers for the backend, and what only the authenticator may see. */
export interface RequestHeaders {
  /** Flat list (name, value, …), names in lower case, in the order in which they came. */
  readonly headers: string[]
  /** Values of the `Authorization` header lines. */
  readonly authorization: string[]
}

type Action = 'forward' | 'drop' | 'authorization' | 'connection'

interface Rule {
  readonly name: string
  readonly action: Action
}

/**
 * Never forwarded, each with its reason. Names are compared with everything but letters and digits read as `-`, because
 * that is how gateways that turn headers into variables read them (`X_Api_Key` is `X-Api-Key` to them).
 */
const DROPPED: ReadonlySet<string> = new Set([
  // Between two neighbours only (RFC 9110 §7.6.1), and the framing, which is made anew with the body.
  ...HOP_BY_HOP,
  'content-length',
  // Ours to answer (RFC 9110 §10.1.1); the backend would answer it a second time.
  'expect',
  // The target's own is sent (decisions §7).
  'host',
  // Credentials of the caller (decisions §3.1).
  'proxy-authorization',
  'cookie',
  'cookie2',
  // Who asked is said by us; a caller's word for it is worth nothing.
  'forwarded',
  'x-real-ip',
])

/** The same, by how the name begins. `x-forwarded-` covers X-Forwarded-Access-Token, -User and -Email (decisions §3.1). */
const DROPPED_PREFIXES = ['x-forwarded-', 'x-amz-', 'x-amzn-oidc-', 'x-auth-request-']

/** Read by their exact name here; under another spelling they would reach the backend as the caller wrote them. */
const EXACT: ReadonlySet<string> = new Set(['mcp-session-id'])

const AGENT_CORE_USER = /^x-amzn-bedrock-agentcore-(?:.+-)?user-id$/

/** Names that are remembered per policy; beyond it the memory starts anew, so that random names cost time, not space. */
const MAX_REMEMBERED = 1024
const MAX_REMEMBERED_LENGTH = 64

/** Shorter credentials are looked for in values only. */
const MIN_LENGTH_IN_NAME = 16

/**
 * A function that reads a request's header lines in one pass and gives what may be forwarded (decisions §3.1):
 * hop-by-hop headers and those named in `Connection`, the caller's credentials, forwarding headers and every copy of a
 * header that we set (`ownedNames`, lower case) are out, and so is each header that contains the raw credentials of an
 * `Authorization` line. Made once per route.
 */
export function createHeaderPolicy(ownedNames: readonly string[]): (rawHeaders: readonly string[]) => RequestHeaders {
  const owned = new Set(ownedNames.map(normalise))
  const remembered = new Map<string, Rule>()

  const learn = (raw: string): Rule => {
    const name = raw.toLowerCase()
    const plain = normalise(name)
    const rule: Rule = { name, action: plain !== name && EXACT.has(plain) ? 'drop' : actionFor(plain, owned) }
    if (raw.length <= MAX_REMEMBERED_LENGTH) {
      if (remembered.size >= MAX_REMEMBERED) remembered.clear()
      remembered.set(raw, rule)
    }
    return rule
  }

  return (rawHeaders) => {
    let headers: string[] = []
    const authorization: string[] = []
    let named: Set<string> | undefined
    for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
      const raw = rawHeaders[index] ?? ''
      const value = rawHeaders[index + 1] ?? ''
      const rule = remembered.get(raw) ?? learn(raw)
      if (rule.action === 'forward') headers.push(rule.name, value)
      else if (rule.action === 'authorization') authorization.push(value)
      else if (rule.action === 'connection') named = connectionNames(value, named)
    }
    if (named !== undefined) headers = without(headers, (name) => named.has(name))
    for (const value of authorization) headers = withoutCredentials(headers, credentialsOf(value))
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

function actionFor(name: string, owned: ReadonlySet<string>): Action {
  // Before everything else, also when it is ours to set: the authenticator needs the caller's.
  if (name === 'authorization') return 'authorization'
  if (name === 'connection') return 'connection'
  if (DROPPED.has(name) || owned.has(name) || AGENT_CORE_USER.test(name)) return 'drop'
  return DROPPED_PREFIXES.some((prefix) => name.startsWith(prefix)) ? 'drop' : 'forward'
}

const normalise = (name: string): string => name.toLowerCase().replace(/[^a-z0-9]/g, '-')

/** Names have been made lower-case, so that a token in one is compared in lower case; a short one is there by chance. */
function withoutCredentials(headers: string[], credentials: string): string[] {
  if (credentials === '') return headers
  const shortest = Math.max(MIN_LENGTH_IN_NAME, credentials.length)
  const holds = (name: string, value: string): boolean =>
    value.includes(credentials) || (name.length >= shortest && name.includes(credentials.toLowerCase()))
  for (let index = 0; index + 1 < headers.length; index += 2) {
    if (holds(headers[index] ?? '', headers[index + 1] ?? '')) return without(headers, holds)
  }
  return headers
}

function without(headers: readonly string[], drops: (name: string, value: string) => boolean): string[] {
  const kept: string[] = []
  for (let index = 0; index + 1 < headers.length; index += 2) {
    const name = headers[index] ?? ''
    const value = headers[index + 1] ?? ''
    if (!drops(name, value)) kept.push(name, value)
  }
  return kept
}
