import { INSPECT_PATH } from '../../inspect/index.ts'
import { type Ops, type Pages, startOps } from '../../ops/index.ts'
import type { ResolvedProxy } from '../../load/index.ts'
import type { ResolvedRoute } from '../../resources/index.ts'
import { adminEndpoints, type ProxyControls } from '../admin.ts'
import { openAdminToken } from '../admin-token.ts'
import { parseListenAddress } from '../../listen/index.ts'
import { placedListener } from '../config-error.ts'
import { type ProxyProcessOptions, startProxy } from './proxy-process.ts'
import type { Reloader } from './reloader.ts'
import { VERSION } from '../version.ts'

export type RunProxyOptions = ProxyProcessOptions

export interface RunningProxy {
  /** `http://127.0.0.1:8080`, or `unix:/path`. */
  readonly url: string
  readonly adminUrl: string
  /** Address of the inspector's page; undefined where it is off. */
  readonly inspectUrl: string | undefined
  /** Of the configuration that it started with. */
  readonly routes: readonly ResolvedRoute[]
  readonly reload: Reloader['reload']
  /** Drains and lets go of everything. */
  close(): Promise<void>
}

/**
 * Runs the proxy: reads the configuration, listens, and follows changes of every file that it read. Throws `ConfigError`
 * with all problems, and `Failure` config_error when an address can't be bound; nothing is left open then.
 */
export async function runProxy(options: RunProxyOptions): Promise<RunningProxy> {
  await using opening = new AsyncDisposableStack()
  const { log } = options
  const proxy = await startProxy(options, opening)
  const { url, first, memory } = proxy
  const { pages } = proxy.inspector ?? {}
  const admin = await placedListener(first.places, 'admin', () => startAdmin(first.admin, proxy, log, opening, pages))
  log.info({ url, admin: admin.url, routes: first.routes.length, ...memory, version: VERSION }, 'listening')
  const opened = opening.move()
  const close = async (): Promise<void> => {
    // The admin listener goes last: it says that the proxy is draining while it drains, and its last figures are read.
    try {
      await opened.disposeAsync()
    } finally {
      await admin.close()
    }
  }
  // Where others reach it and there is no token, nobody may look, and there is no page.
  const isServed = first.admin.tokenFile !== undefined || parseListenAddress(first.admin.address).isLoopback
  const inspectUrl = proxy.inspector && isServed ? `${admin.url}${INSPECT_PATH}` : undefined
  return { url, adminUrl: admin.url, inspectUrl, routes: first.routes, reload: () => proxy.reload(), close }
}

/** The admin listener of a proxy; `stack` gets the file that it watches. Throws `config_error` when its address can't be bound. */
export function startAdmin(
  { address, tokenFile }: ResolvedProxy['admin'],
  controls: ProxyControls,
  log: RunProxyOptions['log'],
  stack: AsyncDisposableStack,
  pages?: Pages,
): Promise<Ops> {
  const token = openAdminToken(tokenFile, stack, log)
  return startOps({
    address,
    version: VERSION,
    readiness: () => controls.readiness(),
    metrics: () => controls.metrics(),
    guarded: { endpoints: adminEndpoints(controls), pages, ...(token === undefined ? {} : { token }) },
    log,
  })
}
