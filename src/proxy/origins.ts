import { isLoopbackHost, parseHost } from '../core/index.ts'
import type { ListenAddress } from '../listen/index.ts'

/** Answers about one listener's `Origin` and `Host` rules. */
export interface OriginRules {
  allowsOrigin(origin: string): boolean
  /** `malformed` is not a host at all. */
  judgeHost(host: string): 'allowed' | 'refused' | 'malformed'
}

export interface OriginOptions {
  readonly address: ListenAddress
  readonly allowedOrigins: readonly string[]
  readonly allowedHosts: readonly string[]
}

/**
 * Which browsers may call (decisions §7, Responses): origins in the list, and on a bind that only this machine reaches
 * also origins of this machine. Which `Host` is served: on a loopback bind loopback names and those listed (anything else
 * is a name that somebody else made point here), elsewhere any, unless hosts are listed.
 */
export function createOriginRules({ address, allowedOrigins, allowedHosts }: OriginOptions): OriginRules {
  const origins = new Set(allowedOrigins.map((origin) => origin.toLowerCase()))
  const hosts = new Set(allowedHosts.map((host) => host.toLowerCase()))
  // The usual client says the same thing on each request.
  let allowedHost: string | undefined
  return {
    allowsOrigin(origin) {
      if (origins.has('*') || origins.has(origin.toLowerCase())) return true
      return address.isLoopback && isLoopbackOrigin(origin)
    },
    judgeHost(text) {
      if (text === allowedHost) return 'allowed'
      const host = parseHost(text)
      if (host === undefined) return 'malformed'
      if (!isAllowedHost(text, host.host, address, hosts)) return 'refused'
      allowedHost = text
      return 'allowed'
    },
  }
}

function isAllowedHost(text: string, name: string, address: ListenAddress, hosts: ReadonlySet<string>): boolean {
  if (hosts.has(name) || hosts.has(text.toLowerCase()) || hosts.has('*')) return true
  // A Unix socket has no name that could be rebound; clients put there what they like.
  if (address.kind === 'unix') return hosts.size === 0
  return address.isLoopback ? isLoopbackHost(name) : hosts.size === 0
}

function isLoopbackOrigin(origin: string): boolean {
  const url = URL.parse(origin)
  return url !== null && (url.protocol === 'http:' || url.protocol === 'https:') && isLoopbackHost(url.hostname)
}
