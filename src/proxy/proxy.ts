import { bind, parseListenAddress } from '../listen/index.ts'
import { createBodyWatch } from './body-watch.ts'
import { drainServer } from './drain.ts'
import { createHandler } from './handler.ts'
import type { Exchange } from './exchange.ts'
import { createObserver } from './observe.ts'
import { DEFAULT_DEADLINES, type Proxy, type ProxyOptions } from './options.ts'
import { createOriginRules } from './origins.ts'
import { createRequestIds } from './request-ids.ts'
import { Roster } from './roster.ts'
import { createRuntimes } from './runtimes.ts'
import { createHttpServer, followCertificate } from './server.ts'
import { createSessions } from './sessions.ts'

/** How long requests whose connection was cut may take to notice, in milliseconds. */
const LAST_REQUESTS_MS = 1000

/**
 * Starts the proxy: listens and serves `runtime` until another one is swapped in or it is drained. Throws `config_error`
 * when it can't listen (the cause has the system's code).
 */
export async function createProxy(options: ProxyOptions): Promise<Proxy> {
  const { clock, log, metrics } = options
  const { tls, allowedOrigins, allowedHosts, headerLimitBytes } = options.listen
  const address = parseListenAddress(options.listen.address)
  const deadlines = { ...DEFAULT_DEADLINES, ...options.deadlines }
  const runtimes = createRuntimes(options.runtime, log)
  const active = new Roster<Exchange>()
  const bodyWatch = createBodyWatch(active, clock, deadlines)
  const handler = createHandler({
    active,
    rules: createOriginRules({ address, allowedOrigins, allowedHosts }),
    runtimes,
    sessions: createSessions(options.sessionKey),
    bodyWatch,
    observer: createObserver({ log, metrics, clock }),
    clock,
    newRequestId: options.newRequestId ?? createRequestIds(),
  })
  const server = createHttpServer(handler, { headerLimitBytes, tls, deadlines, log })
  const unfollow = followCertificate(server, tls, log)
  const scheme = tls === undefined ? 'http' : 'https'
  const url = await bind(server, address, { scheme }).catch((error: unknown) => {
    unfollow()
    bodyWatch.close()
    throw error
  })

  const end = async (graceMs: number): Promise<void> => {
    await drainServer(server, handler, active, graceMs)
    unfollow()
    bodyWatch.close()
    await runtimes.close(LAST_REQUESTS_MS)
  }
  let ended: Promise<void> | undefined
  return {
    url,
    swap: (runtime) => runtimes.swap(runtime),
    drain: (graceMs) => (ended ??= end(graceMs)),
  }
}
