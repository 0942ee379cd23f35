import { isLoopbackHost, parseHost } from '../core/index.ts'
import type { ListenAddress } from '../listen/index.ts'

/** Evaluates one listener's `Origin` and `Host` rules. */
export interface OriginRules {
  allowsOrigin(origin: string): boolean
  /** `malformed` is not a valid host. */
  checkHost(host: string): 'allowed' | 'refused' | 'malformed'
}

export interface OriginOptions {
  readonly address: ListenAddress
  readonly allowedOrigins: readonly string[]
  readonly allowedHosts: readonly string[]
}

/**
 * Allowed origins (decisions §7, Responses): those in the list, and on a local bind also origins of this machine.
 * Allowed hosts: on a loopback bind loopback names and listed ones (any other name indicates DNS rebinding); on other
 * binds all, unless hosts are listed.
 */
export function createOriginRules({ address, allowedOrigins, allowedHosts }: OriginOptions): OriginRules {
  const origins = new Set(allowedOrigins.map((origin) => origin.toLowerCase()))
  const hosts = new Set(allowedHosts.map((host) => host.toLowerCase()))
  // Clients send the same value on every request.
  let allowedHost: string | undefined
  return {
    allowsOrigin(origin) {
      if (origins.has('*') || origins.has(origin.toLowerCase())) return true
      return address.isLoopback && isLoopbackOrigin(origin)
    },
    checkHost(text) {
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
  // DNS rebinding does not apply to Unix sockets, where clients send arbitrary hosts.
  if (address.kind === 'unix') return hosts.size === 0
  return address.isLoopback ? isLoopbackHost(name) : hosts.size === 0
}

function isLoopbackOrigin(origin: string): boolean {
  const url = URL.parse(origin)
  return url !== null && (url.protocol === 'http:' || url.protocol === 'https:') && isLoopbackHost(url.hostname)
}
