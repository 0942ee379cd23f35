import { isLoopbackHost } from '../../core/index.ts'

/** Where a route is, as far as that tells what its clients connect to. */
export interface RoutePlace {
  readonly path: string
  /** `listen.address`, as it is written. */
  readonly address: string
  /** The bind is a loopback address or a Unix socket. */
  readonly isLocal: boolean
}

/**
 * What about a `resourceUrl` makes clients refuse it: they compare it with the URL that they connect to (RFC 9728 §3.3).
 * It can't be known from here what lies before this proxy, so these are remarks, without a full stop.
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
  if (!isLocal) found.push('it names this machine, and the bind is for others too; these refuse it')
  const port = /:(\d+)$/.exec(address)?.[1]
  const named = url.port === '' ? (url.protocol === 'https:' ? '443' : '80') : url.port
  if (isLocal && port !== undefined && port !== '0' && port !== named)
    found.push(
      `its port is ${named}, and the proxy listens on ${port}; clients refuse a resource that is not the URL they connect to`,
    )
  return found
}
