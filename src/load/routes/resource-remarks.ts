import { isLoopbackHost } from '../../core/index.ts'

/** The address of a route, as far as it determines the URL that clients connect to. */
export interface RoutePlace {
  readonly path: string
  /** `listen.address`, as it is written. */
  readonly address: string
  /** The bind is a loopback address or a Unix socket. */
  readonly isLocal: boolean
}

/**
 * Reasons for clients to reject a `resourceUrl`: they compare it with the URL that they connect to (RFC 9728 §3.3).
 * Gateways before this proxy are unknown, so these are remarks, without a full stop.
 */
export function remarksOnResource(resourceUrl: string, { path, address, isLocal }: RoutePlace): readonly string[] {
  const url = new URL(resourceUrl)
  const found: string[] = []
  const served = path.replace(/\/$/, '')
  if (!url.pathname.replace(/\/$/, '').endsWith(served))
    found.push(
      `its path is "${url.pathname}", and the route is at "${path}"; clients refuse a resource that is not the URL they connect to, unless something before this proxy changes the path`,
    )
  if (!isLoopbackHost(url.hostname)) return found
  if (!isLocal) found.push('it names this machine, but the listener accepts other machines, which reject it')
  const port = /:(\d+)$/.exec(address)?.[1]
  const named = url.port === '' ? (url.protocol === 'https:' ? '443' : '80') : url.port
  if (isLocal && port !== undefined && port !== '0' && port !== named)
    found.push(
      `its port is ${named}, and the proxy listens on ${port}; clients refuse a resource that is not the URL they connect to`,
    )
  return found
}
