import { createApply } from '../../../src/apply/index.ts'
import {
  ANONYMOUS,
  type Armed,
  type Caller,
  type Credential,
  type Known,
  type Matched,
  NO_CREDENTIAL,
  type Obtain,
  type Route,
  Secret,
} from '../../../src/core/index.ts'
import { createForward } from '../../../src/forward/index.ts'
import { createBackend } from '../../../src/net/index.ts'
import {
  createProxy,
  documentHandler,
  type ListenOptions,
  type Proxy,
  type ProxyOptions,
  type Runtime,
} from '../../../src/proxy/index.ts'
import {
  createManualClock,
  createRecordingLog,
  createRecordingMetrics,
  type ManualClock,
  monotonicOf,
  type RecordingLog,
  type RecordingMetrics,
} from '../ports.ts'
import type { Sockets } from '../sockets.ts'

export interface RouteOptions extends Partial<Omit<Route, 'authenticate' | 'obtain' | 'apply' | 'forward' | 'target'>> {
  readonly needsBody?: boolean
  /** Returns the caller; may throw `Failure`. */
  readonly caller?: (matched: Matched) => Caller | Promise<Caller>
  /** The credential that is obtained; asked on each attempt. */
  readonly credential?: () => Credential | Promise<Credential>
  readonly reject?: Obtain['reject']
  readonly isFreshAfterRejection?: () => boolean
  readonly targetPath?: string
  readonly targetQuery?: string
}

/** A header credential; its name has to be among the route's `ownedHeaders`. */
export const headerCredential = (name: string, value: string): Credential => ({
  kind: 'header',
  name,
  value: new Secret(value),
})

/** A route to `origin` with the real apply and forward; who calls and with what is the test's. */
export function createRoute(sockets: Sockets, origin: string, options: RouteOptions = {}): Route {
  const bounds = { timeouts: { connect: 1000, firstByte: 0, idle: 0 }, http2: false }
  const backend = createBackend({ origin, ...bounds })
  sockets.closing({ close: () => backend.destroy() })
  const {
    targetPath = '/',
    targetQuery = '',
    needsBody = false,
    caller,
    credential,
    reject,
    isFreshAfterRejection = () => false,
    ...rest
  } = options
  const route = {
    name: 'r',
    type: 'unauthenticated',
    path: '/',
    exactTarget: false,
    target: { origin, host: new URL(origin).host, path: targetPath, query: targetQuery },
    ownedHeaders: [],
    passHeaders: [],
    whenRejected: 'backend_rejected_credential' as const,
    resourceUrl: undefined,
    isProtected: false,
    allowUpgrade: false,
    limits: { bufferedBody: 10 * 1024 * 1024 },
    sseKeepAlive: 0,
    realm: 'mcp',
    requiredScopes: [],
    ...rest,
  }
  return {
    ...route,
    authenticate: async (matched) => ({ matched, caller: (await caller?.(matched)) ?? ANONYMOUS }) as unknown as Known,
    obtain: {
      obtain: async (known) => ({ known, credential: (await credential?.()) ?? NO_CREDENTIAL }) as unknown as Armed,
      reject: reject ?? (() => false),
      isFreshAfterRejection,
      lookup: () => ({ from: 'config' }),
    },
    apply: createApply({ host: route.target.host, needsBody, clock: Date }),
    forward: createForward(route, { backend, clock: Date }),
  }
}

export const runtimeOf = (routes: readonly Route[], documents: Record<string, object> = {}): Runtime => ({
  routes,
  localHandlers: Object.entries(documents).map(([address, document]) => documentHandler(address, document)),
  close: async () => {
    await Promise.all(routes.map((route) => route.forward.close()))
  },
})

export interface Started extends Proxy {
  readonly log: RecordingLog
  readonly metrics: RecordingMetrics
  readonly clock: ManualClock
}

/** The real proxy on a free loopback port. */
export async function startProxy(
  sockets: Sockets,
  runtime: Runtime,
  listen: Partial<ListenOptions> = {},
  more: Partial<ProxyOptions> = {},
): Promise<Started> {
  const log = createRecordingLog()
  const metrics = createRecordingMetrics()
  const clock = createManualClock()
  const proxy = await createProxy({
    listen: {
      address: '127.0.0.1:0',
      allowedOrigins: [],
      allowedHosts: [],
      headerLimitBytes: 16 * 1024,
      ...listen,
    },
    runtime,
    clock,
    monotonicClock: monotonicOf(clock),
    log,
    metrics,
    sessionKey: () => new Secret('k'.repeat(32)),
    newRequestId: () => 'request-1',
    ...more,
  })
  sockets.closing({ close: () => proxy.drain(0) })
  return { ...proxy, log, metrics, clock }
}

export interface RawBackend {
  readonly origin: string
  /** Everything that reached it, latin1, a string for each connection. */
  readonly received: string[]
}

/** A backend of raw connections that records each byte and answers 200 to each request whose head (and body) is there. */
export async function startRawBackend(
  sockets: Sockets,
  answer = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}',
): Promise<RawBackend> {
  const received: string[] = []
  const origin = await sockets.tcp((socket) => {
    const at = received.push('') - 1
    let pending = ''
    socket.on('data', (chunk: Buffer) => {
      received[at] += chunk.toString('latin1')
      pending += chunk.toString('latin1')
      const end = pending.indexOf('\r\n\r\n')
      if (end === -1) return
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(pending.slice(0, end))?.[1] ?? 0)
      const isChunked = /\r\ntransfer-encoding: chunked/i.test(pending.slice(0, end))
      if (isChunked ? !pending.endsWith('0\r\n\r\n') : pending.length < end + 4 + length) return
      pending = ''
      socket.write(answer)
    })
  })
  return { origin, received }
}

/** Header lines of a recorded request, lower-case names. */
export const headersIn = (recorded: string | undefined): string[][] =>
  (recorded ?? '')
    .split('\r\n\r\n', 1)
    .join('')
    .split('\r\n')
    .slice(1)
    .map((line) => {
      const colon = line.indexOf(': ')
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 2)]
    })
