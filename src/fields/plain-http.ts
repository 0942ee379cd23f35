import { isLoopbackHost } from '../core/index.ts'

/** Policy for a URL with scheme `http` (decisions §2.6). */
export type PlainHttp = 'fine' | 'warn' | 'refuse'

/**
 * `https` and loopback are fine; in-cluster names (`*.svc`, `*.svc.cluster.local`, single-label) are used with a warning;
 * anything else needs `insecureAllowHttp: true`.
 */
export function judgePlainHttp(url: string, insecureAllowHttp: boolean): PlainHttp {
  if (!URL.canParse(url)) return 'refuse'
  const { protocol, hostname } = new URL(url)
  if (protocol === 'https:' || isLoopbackHost(hostname)) return 'fine'
  return insecureAllowHttp || isInClusterName(hostname) ? 'warn' : 'refuse'
}

/** Names that only a cluster's DNS resolves. An address is none. */
function isInClusterName(host: string): boolean {
  const name = host.toLowerCase().replace(/\.$/, '')
  if (name.startsWith('[') || /^[\d.]+$/.test(name)) return false
  return name.endsWith('.svc') || name.endsWith('.svc.cluster.local') || !name.includes('.')
}

/** Whether a listen address (`host:port`, `:port`, `unix:/path`) can only be reached from this machine. */
export function isLoopbackBind(address: string): boolean {
  if (address.startsWith('unix:')) return true
  const host = address.slice(0, address.lastIndexOf(':'))
  return host !== '' && isLoopbackHost(host)
}
