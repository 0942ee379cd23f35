import { randomBytes } from 'node:crypto'
import { signingSteps } from '../../apply/index.ts'
import { type Clock, type Log, monotonicNow, type RequestObserver, Secret } from '../../core/index.ts'
import { createInspector, type Inspector } from '../../inspect/index.ts'
import { IN_PROCESS, type TlsMaterial } from '../../listen/index.ts'
import type { ResolvedProxy } from '../../load/index.ts'
import type { DecisionLog } from '../../obtain/cloud-sts/index.ts'
import { type Ops, type Pages, type Readiness, startOps } from '../../ops/index.ts'
import { createProxy, type Proxy, type Runtime } from '../../proxy/index.ts'
import { adminEndpoints, type ProxyControls } from '../admin.ts'
import type { MemoryShares } from '../memory-limit.ts'
import { requestOwnListener } from '../own-listener.ts'
import { VERSION } from '../version.ts'
import type { Common, Services } from './services.ts'
import { openWatchedFile } from '../../files/index.ts'

const NOTHING: Runtime = { routes: [], localHandlers: [], close: () => Promise.resolve() }
/** In-process connections belong to one client without deadlines: unread data causes backpressure, not more memory. */
const INLINE_LISTEN = { address: IN_PROCESS, allowedHosts: ['localhost'] }
const PATIENT = Number.POSITIVE_INFINITY
const INLINE_DEADLINES = { unreadAnswerMs: PATIENT, unreadBodyMs: PATIENT, bodyIdleMs: PATIENT }

interface ListenerParts {
  readonly memory: MemoryShares
  readonly common: Common | undefined
  readonly isInline: boolean
  readonly tls: TlsMaterial | undefined
  readonly observer: RequestObserver | undefined
  readonly logsClients: boolean | undefined
}

/** Opens the listener without routes: the resource URLs of routes depend on its address. */
export async function openListener(
  config: ResolvedProxy,
  services: Services,
  stack: AsyncDisposableStack,
  { memory, common, isInline, tls, observer, logsClients }: ListenerParts,
): Promise<Proxy> {
  const { clock, log, metrics } = services
  const held = services.materials.hold()
  stack.defer(() => held.release())
  const ephemeralKey = common?.sessionKey ?? new Secret(randomBytes(32).toString('base64url'))
  const { sessionKeySecretRef } = config
  const sessionKey = sessionKeySecretRef === undefined ? undefined : held.secrets.handle(sessionKeySecretRef, 'bytes')
  return createProxy({
    listen: {
      ...config.listen,
      bufferedBodiesBytes: memory.keptBodiesBytes,
      // In-process connections belong to one client.
      unreadAnswersBytes: isInline ? PATIENT : memory.unreadAnswersBytes,
      tls,
      acceptedAt: common?.url,
      ...(isInline ? INLINE_LISTEN : {}),
    },
    ...(isInline ? { deadlines: INLINE_DEADLINES } : {}),
    runtime: NOTHING,
    observer,
    clock,
    log,
    logsClients,
    metrics,
    sessionKey: () => sessionKey?.current() ?? ephemeralKey,
    onRouteGone: ({ name, type }) => metrics.removeSeries({ route: name, type }),
  })
}

/** Opens the admin listener; `stack` owns the token file watch. Throws `config_error` if the address can't be bound. */
export function startAdmin(
  { address, tokenFile }: ResolvedProxy['admin'],
  controls: ProxyControls,
  log: Log,
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

/** Demo users for test requests from the inspector; only the lab provides them. */
export interface TryUsers {
  readonly names: readonly string[]
  /** A token of a user for the route at `routePath` of the proxy at `proxyUrl`; undefined if none is needed. */
  tokenOf(user: string, routePath: string, proxyUrl: string): Promise<Secret | undefined>
}

export interface InspectionOptions {
  /** Approximate size of the kept requests in bytes. */
  readonly maxBytes: number
  readonly showClaims: boolean
  readonly clock: Clock
  readonly log: Log
  readonly decisions: DecisionLog
}

/** The inspected proxy. */
export interface Inspected extends ProxyControls {
  readonly url: string
  config(): ResolvedProxy
  readiness(): Readiness
}

/** Default size of the kept requests in bytes. */
export const INSPECT_BYTES = 8 * 1024 * 1024

/** Opens the inspector, which observes requests; undefined if it is off. */
export function openInspector(
  mode: ResolvedProxy['admin']['inspector'],
  { decisions, ...options }: InspectionOptions,
): Inspector | undefined {
  if (mode === 'off') return undefined
  return createInspector({
    ...options,
    mode,
    monotonicMs: monotonicNow,
    decisionOf: (requestId) => decisions.of(requestId)?.decision,
    rulesOf: (requestId) => decisions.of(requestId)?.rules,
    signingOf: signingSteps,
  })
}

/** The pages of the inspector; each view reads `inspected` again. */
export function inspectorPages(
  inspector: Inspector,
  inspected: Inspected,
  certificate: () => Buffer | undefined,
  tryUsers: TryUsers | undefined,
): Pages {
  const endpoints = adminEndpoints(inspected)
  const cache = (key: 'GET /cache' | 'DELETE /cache') => {
    const handler = endpoints[key]
    if (handler === undefined) throw new TypeError(`no endpoint ${key}`)
    return handler
  }
  const { url } = inspected
  const pathOf = (name: string) => inspected.config().routes.find((route) => route.name === name)?.path
  return inspector.pages({
    version: VERSION,
    config: () => inspected.config(),
    readiness: () => inspected.readiness(),
    routes: () =>
      inspected.config().routes.map(({ name, path, auth, target }) => ({
        name,
        path,
        type: auth.type,
        // Without the query: it may contain secrets.
        target: `${target.origin}${target.path}`,
      })),
    listCache: cache('GET /cache'),
    purgeCache: cache('DELETE /cache'),
    try: {
      offer: () => ({ proxyUrl: url, ...(tryUsers === undefined ? {} : { users: tryUsers.names }) }),
      pathOf,
      send: (request) => {
        const { allowedHosts } = inspected.config().listen
        return requestOwnListener({ url, allowedHosts, certificate: certificate() }, request)
      },
      ...(tryUsers === undefined
        ? {}
        : { tokenOf: (user: string, route: string) => tryUsers.tokenOf(user, pathOf(route) ?? '/', url) }),
    },
  })
}

const MAX_TOKEN_FILE_BYTES = 64 * 1024

/** The token of `admin.tokenFile`, read again when the file changes; undefined if not configured. */
function openAdminToken(
  path: string | undefined,
  stack: AsyncDisposableStack,
  log: Log,
): (() => Secret | undefined) | undefined {
  if (path === undefined) return undefined
  const file = stack.adopt(
    openWatchedFile(path, {
      maxBytes: MAX_TOKEN_FILE_BYTES,
      onProblem: (reason) => log.warn({ file: path, reason }, 'admin.tokenFile cannot be read'),
    }),
    (opened) => opened.close(),
  )
  return () => {
    const text = file.read()?.toString('utf8').trim()
    return text === undefined || text === '' ? undefined : new Secret(text)
  }
}
