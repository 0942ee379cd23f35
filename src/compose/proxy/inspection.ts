import { performance } from 'node:perf_hooks'
import { signingSteps } from '../../apply/index.ts'
import type { Clock, Log, Secret } from '../../core/index.ts'
import { createInspector, type Inspector } from '../../inspect/index.ts'
import type { OpsRequest, Readiness } from '../../ops/index.ts'
import type { DecisionLog } from '../../obtain/cloud-sts/index.ts'
import type { ResolvedProxy } from '../../load/index.ts'
import { adminEndpoints, type ProxyControls } from '../admin.ts'
import { requestOwnListener } from '../own-listener.ts'
import { VERSION } from '../version.ts'

/** Users that requests can be tried as, without a token of one's own: only the lab has some. */
export interface TryUsers {
  readonly names: readonly string[]
  /** A token of a user for the route at `routePath` of the proxy at `proxyUrl`; undefined where none is needed. */
  tokenOf(user: string, routePath: string, proxyUrl: string): Promise<Secret | undefined>
}

export interface InspectionOptions {
  /** About how many bytes of finished requests are kept. */
  readonly maxBytes: number
  readonly showClaims: boolean
  readonly clock: Clock
  readonly log: Log
  readonly decisions: DecisionLog
  readonly tryUsers: TryUsers | undefined
}

/** The proxy that is inspected, as far as it is there when somebody looks. */
export interface Inspected extends ProxyControls {
  readonly url: string
  config(): ResolvedProxy
  readiness(): Readiness
  /** Certificate of the proxy listener in PEM; undefined for plain http. */
  certificate(): Buffer | undefined
}

/** What is kept of finished requests when nobody says otherwise, in bytes. */
export const INSPECT_BYTES = 8 * 1024 * 1024

/**
 * The inspector of a proxy process; undefined where it is off. `inspected` is asked for only when a page is, so that the
 * inspector can be made before the proxy that it observes.
 */
export function openInspection(
  mode: ResolvedProxy['admin']['inspector'],
  inspected: () => Inspected,
  { maxBytes, showClaims, clock, log, decisions, tryUsers }: InspectionOptions,
): Inspector | undefined {
  if (mode === 'off') return undefined
  const cache = (key: 'GET /cache' | 'DELETE /cache') => (request: OpsRequest) => {
    const handler = adminEndpoints(inspected())[key]
    if (handler === undefined) throw new TypeError(`no endpoint ${key}`)
    return handler(request)
  }
  const pathOf = (name: string) =>
    inspected()
      .config()
      .routes.find((route) => route.name === name)?.path
  return createInspector({
    mode,
    maxBytes,
    showClaims,
    clock,
    log,
    monotonicMs: () => performance.now(),
    version: VERSION,
    decisionOf: (requestId) => decisions.of(requestId)?.decision,
    rulesOf: (requestId) => decisions.of(requestId)?.rules,
    signingOf: signingSteps,
    config: () => inspected().config(),
    readiness: () => inspected().readiness(),
    routes: () =>
      inspected()
        .config()
        .routes.map(({ name, path, auth, target }) => ({
          name,
          path,
          type: auth.type,
          // Without the query: it may hold what is nobody's business.
          target: `${target.origin}${target.path}`,
        })),
    listCache: cache('GET /cache'),
    purgeCache: cache('DELETE /cache'),
    try: {
      offer: () => ({
        proxyUrl: inspected().url,
        ...(tryUsers === undefined ? {} : { users: tryUsers.names }),
      }),
      pathOf,
      send: (request) => {
        const proxy = inspected()
        const { allowedHosts } = proxy.config().listen
        return requestOwnListener({ url: proxy.url, allowedHosts, certificate: proxy.certificate() }, request)
      },
      ...(tryUsers === undefined
        ? {}
        : { tokenOf: (user: string, route: string) => tryUsers.tokenOf(user, pathOf(route) ?? '/', inspected().url) }),
    },
  })
}
