/** `host` or `host:port` as the Host header has it: an IPv6 literal in brackets, an IPv4 literal or a name. */
const HOST = /^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(\d{1,5}))?$/

export interface HostAndPort {
  /** Lower-case; an IPv6 literal without its brackets. */
  readonly host: string
  readonly port: number | undefined
}

/** Reads a Host header or an authority without user information; undefined when it is not one (RFC 9110 §7.2). */
export function parseHost(text: string): HostAndPort | undefined {
  const match = HOST.exec(text)
  if (match === null) return undefined
  const port = match[2] === undefined ? undefined : Number(match[2])
  if (port !== undefined && port > 65_535) return undefined
  return { host: (match[1] ?? '').replace(/^\[|\]$/g, '').toLowerCase(), port }
}

/**
 * Whether a host is always this machine: `localhost` and names below it (RFC 6761 §6.3), 127.0.0.0/8, `::1` and the
 * IPv4-mapped form of the former. `host` has no port; brackets around an IPv6 literal are accepted.
 */
export function isLoopbackHost(host: string): boolean {
  const name = host
    .replace(/^\[|\]$/g, '')
    .toLowerCase()
    .replace(/\.$/, '')
  if (name === 'localhost' || name.endsWith('.localhost')) return true
  if (/^(?:::ffff:)?127(?:\.\d{1,3}){3}$/.test(name)) return true
  return name === '::1' || name === '0:0:0:0:0:0:0:1'
}
