import type { Duplex } from 'node:stream'
import type { ResolvedRoute } from '../../resources/index.ts'
import { ConfigError } from '../config-error.ts'
import { type ProxyProcessOptions, startProxy } from './proxy-process.ts'

export interface InlineProxyOptions extends Omit<
  ProxyProcessOptions,
  'listen' | 'drainGraceMs' | 'isInline' | 'onlyRoute'
> {
  /** The route that is asked for; may be left out where there is only one. */
  readonly route?: string | undefined
}

/** The whole pipeline without a listener, for whoever is in this process. */
export interface InlineProxy {
  /** A new connection, its client end. */
  connect(): Duplex
  /** Of the route; a reload may move it. */
  path(): string
  readonly route: ResolvedRoute
  close(): Promise<void>
}

/** Nobody but this process comes in, so that the rules of a loopback bind hold whatever the files say. */
const LISTEN = '127.0.0.1:0'

/**
 * Runs the proxy without listening anywhere, and follows changes of every file that it read. Throws `ConfigError` with all
 * problems; nothing is left open then.
 */
export async function runInlineProxy(options: InlineProxyOptions): Promise<InlineProxy> {
  await using opening = new AsyncDisposableStack()
  const proxy = await startProxy(
    { ...options, onlyRoute: options.route, listen: LISTEN, drainGraceMs: 0, isInline: true },
    opening,
  )
  const route = chosen(proxy.first.routes, options.route)
  const opened = opening.move()
  return {
    connect: () => proxy.connect(),
    path: () => proxy.config().routes.find(({ name }) => name === route.name)?.path ?? route.path,
    route,
    close: () => opened.disposeAsync(),
  }
}

/** Throws `ConfigError` when it is not clear which. */
function chosen(routes: readonly ResolvedRoute[], wanted: string | undefined): ResolvedRoute {
  const names = routes.map(({ name }) => name).join(', ')
  const [only] = routes
  if (wanted === undefined && routes.length === 1 && only !== undefined) return only
  if (wanted === undefined) throw new ConfigError([`which route? --route NAME, one of: ${names}`])
  const found = routes.find(({ name }) => name === wanted)
  if (found === undefined) throw new ConfigError([`there is no route ${JSON.stringify(wanted)}; there is: ${names}`])
  return found
}
