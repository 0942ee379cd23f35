import { isLoopbackHost } from '../../core/index.ts'

/** Maximum length of a redirect URI in characters. */
const MOST_REDIRECT_URI = 2_048

/** Private-use schemes without a dot of editors with MCP clients (RFC 8252 §7.1 asks for a dot). */
const EDITOR_SCHEMES: ReadonlySet<string> = new Set(['cursor', 'vscode', 'vscode-insiders', 'windsurf', 'claude'])

const LOOPBACK = /^http:\/\/(localhost|127\.0\.0\.1|\[::1\])(?::[0-9]{1,5})?([/?].*)?$/

/** Visible ASCII that every URL parser reads alike. */
const PLAIN = /^[^\s"<>\\^`{|}#]+$/
const ASCII = /^[\x21-\x7e]+$/

export type RedirectKind = 'web' | 'loopback' | 'private'

/**
 * Classifies a redirect URI; undefined when it may not be registered (authserver.md §3, RFC 8252 §7): https; http for
 * `localhost`, `127.0.0.1` and `[::1]` only; private-use schemes with a dot or of a known editor. No fragment, no
 * user information, no wildcard host, at most 2,048 characters of visible ASCII.
 */
export function redirectKind(text: string): RedirectKind | undefined {
  if (text.length > MOST_REDIRECT_URI || !PLAIN.test(text) || !ASCII.test(text)) return undefined
  const url = URL.parse(text)
  if (url === null || url.username !== '' || url.password !== '' || url.host.includes('*')) return undefined
  const scheme = url.protocol.slice(0, -1)
  if (scheme === 'https') return /^https:\/\/[^/?@]+([/?]|$)/.test(text) ? 'web' : undefined
  if (scheme === 'http') return LOOPBACK.test(text) ? 'loopback' : undefined
  if (!text.startsWith(`${scheme}:`) || /^[^/?]*:\/\/[^/?]*@/.test(text)) return undefined
  return scheme.includes('.') || EDITOR_SCHEMES.has(scheme) ? 'private' : undefined
}

/** Whether a redirect URI leads to a program on the user's device, which can't keep a secret (RFC 8252 §8.5). */
export const isOnOwnDevice = (uri: string): boolean =>
  redirectKind(uri) !== 'web' || isLoopbackHost(new URL(uri).hostname)

/**
 * Whether a requested redirect URI is registered: exact match; loopback URIs match with any port (RFC 8252 §7.3: same
 * host name, `localhost` is not `127.0.0.1`; path and query as escaped).
 */
export function isRegistered(requested: string, registered: readonly string[]): boolean {
  if (registered.includes(requested)) return true
  const loopback = portless(requested)
  return loopback !== undefined && registered.some((one) => portless(one) === loopback)
}

/** A loopback URI without its port; undefined for every other URI. */
export function portless(text: string): string | undefined {
  const match = LOOPBACK.exec(text)
  if (match === null || !URL.canParse(text)) return undefined
  return `http://${match[1]}${match[2] ?? ''}`
}

/** Adds an authorization response to the redirect URI's query (RFC 6749 §4.1.2). */
export function withAnswer(redirectUri: string, answer: Readonly<Record<string, string | undefined>>): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(answer)) if (value !== undefined) query.append(name, value)
  const separator = !redirectUri.includes('?') ? '?' : redirectUri.endsWith('?') ? '' : '&'
  return `${redirectUri}${separator}${query.toString()}`
}
