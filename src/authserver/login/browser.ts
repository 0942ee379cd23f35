import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { EpochMs } from '../../core/index.ts'
import { LOGIN_MS } from '../lifespans.ts'

/** Maximum concurrent logins per browser; the oldest is dropped. */
const MOST_LOGINS = 8

/** A login in a browser. Its number is part of a cookie name, so two tabs have separate logins. */
export interface Flow {
  readonly id: string
  /** Secret of this browser. */
  readonly secret: string
}

const FLOW_ID = /^[0-9a-z]{7}[A-Za-z0-9_-]{11}$/
const PREFIX = 'extauth-login-'

/** Parses cookies; the first of a name counts, as browsers send the most specific first (RFC 6265 §5.4). */
export function readCookies(header: string | undefined): ReadonlyMap<string, string> {
  const cookies = new Map<string, string>()
  for (const pair of header?.split(';') ?? []) {
    const at = pair.indexOf('=')
    const name = pair.slice(0, at).trim()
    if (at > 0 && !cookies.has(name)) cookies.set(name, pair.slice(at + 1).trim())
  }
  return cookies
}

/**
 * A host-only `Set-Cookie`: `__Host-` with TLS; http is loopback, where browsers reject the prefix. Expires after
 * `maxAgeMs`, or with the browser session.
 */
export function setCookie(name: string, value: string, origin: string, maxAgeMs: number | undefined): string {
  const life = maxAgeMs === undefined ? '' : `; Max-Age=${Math.floor(maxAgeMs / 1000)}`
  const secure = isSecure(origin) ? '; Secure' : ''
  return `${cookieName(name, origin)}=${value}; Path=/${life}; HttpOnly; SameSite=Lax${secure}`
}

/** The full cookie name for an origin. */
export const cookieName = (name: string, origin: string): string => (isSecure(origin) ? `__Host-${name}` : name)

const isSecure = (origin: string): boolean => origin.startsWith('https:')

/** Starts a login and sets the cookies that bind it to this browser. */
export function beginFlow(
  cookies: ReadonlyMap<string, string>,
  origin: string,
  nowMs: EpochMs,
): { readonly flow: Flow; readonly setCookies: readonly string[] } {
  const time = Math.floor(nowMs / 1000)
    .toString(36)
    .padStart(7, '0')
  const flow = { id: time + randomBytes(8).toString('base64url'), secret: randomBytes(32).toString('base64url') }
  const prefix = cookieName(PREFIX, origin)
  // Their numbers begin with the time.
  const older = [...cookies.keys()].filter((name) => name.startsWith(prefix)).sort()
  const given = older.slice(0, Math.max(0, older.length - MOST_LOGINS + 1)).map((name) => name.slice(prefix.length))
  return {
    flow,
    setCookies: [
      ...given.filter((id) => FLOW_ID.test(id)).map((id) => endFlow(id, origin)),
      setCookie(PREFIX + flow.id, flow.secret, origin, LOGIN_MS),
    ],
  }
}

/** The login with this number, if this browser started it. */
export function flowOf(id: string, cookies: ReadonlyMap<string, string>, origin: string): Flow | undefined {
  const secret = FLOW_ID.test(id) ? cookies.get(cookieName(PREFIX + id, origin)) : undefined
  return secret === undefined || !/^[A-Za-z0-9_-]{43}$/.test(secret) ? undefined : { id, secret }
}

/** `Set-Cookie` that removes a login's single-use cookie. */
export const endFlow = (id: string, origin: string): string => setCookie(PREFIX + id, '', origin, 0)

/** A digest of a flow's secret, safe to embed in a page. */
export const flowDigest = ({ secret }: Flow): string => createHash('sha256').update(secret).digest('base64url')

/** Whether the digest belongs to this flow. */
export function isFlowOf(flow: Flow, digest: string): boolean {
  const own = Buffer.from(flowDigest(flow))
  const other = Buffer.from(digest)
  return own.length === other.length && timingSafeEqual(own, other)
}
