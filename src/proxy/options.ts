import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type {
  Clock,
  LocalHandler,
  Log,
  Metrics,
  MonotonicClock,
  RequestObserver,
  Route,
  Secret,
} from '../core/index.ts'
import type { ListenAddress, ListenerDeadlines, TlsMaterial } from '../listen/index.ts'

/** The part that a reload replaces atomically. */
export interface Runtime {
  readonly routes: readonly Route[]
  /** Local endpoints, matched before routes; addresses are unique. */
  readonly localHandlers: readonly LocalHandler[]
  /** Called once, after the last request that uses it. */
  close(): Promise<void>
}

export interface ListenOptions {
  /** `host:port`, `:port`, `unix:/path`, or `IN_PROCESS`: no socket, only `Proxy.connect`. */
  readonly address: string | ListenAddress
  readonly tls?: TlsMaterial | undefined
  /** The URL of a supervisor that accepts there and passes connections to `Proxy.take`. Default: it listens itself. */
  readonly acceptedAt?: string | undefined
  /** Allowed browser origins, or `*`. */
  readonly allowedOrigins: readonly string[]
  /** Accepted host names, with or without port, besides those implied by the bind. */
  readonly allowedHosts: readonly string[]
  readonly headerLimitBytes: number
  /** Ranges in CIDR notation: peers whose forwarding headers are trusted. Default: none. */
  readonly trustedProxies?: readonly string[]
  /** Maximum concurrent connections. Default 10,000. */
  readonly connectionLimit?: number
  /** Maximum bytes of buffered request bodies, all requests together. Default 256 MiB. */
  readonly bufferedBodiesBytes?: number
  /** Maximum bytes of unread responses, all together. Default 64 MiB. */
  readonly unreadAnswersBytes?: number
  /** Maximum bytes of streamed bodies that backends do not read, all together. Default: as for unread responses. */
  readonly streamedBodiesBytes?: number
}

/** Time limits for request bodies, in milliseconds. */
export interface BodyDeadlines {
  /** For a buffered body. Default 60 s. */
  readonly keptBodyMs: number
  /**
   * For a body of unknown length, before it is streamed instead of buffered. Default 30 ms: a streaming client waits
   * for the response.
   */
  readonly unannouncedBodyMs: number
  /** Between two pieces of a body, unless the backend does not read. Default 30 s. */
  readonly bodyIdleMs: number
}

export const DEFAULT_BODY_DEADLINES: BodyDeadlines = {
  keptBodyMs: 60_000,
  unannouncedBodyMs: 30,
  bodyIdleMs: 30_000,
}

export interface ProxyOptions {
  readonly listen: ListenOptions
  readonly runtime: Runtime
  readonly clock: Clock
  /** Clock of deadlines. Default `MONOTONIC_CLOCK`. */
  readonly monotonicClock?: MonotonicClock
  readonly log: Log
  readonly metrics: Metrics
  /** A reload removed this route and its last request has ended: its metrics end. */
  readonly onRouteGone?: (route: Pick<Route, 'name' | 'type'>) => void
  /** Log the client's address for rejected requests. Default true. */
  readonly logsClients?: boolean | undefined
  /** Observes every request; no cost without one. */
  readonly observer?: RequestObserver | undefined
  /** Key of the session ids for clients; read per use, so that a secret may appear later. */
  readonly sessionKey: () => Secret
  /** Unguessable request ids; default 96 random bits. */
  readonly newRequestId?: () => string
  readonly deadlines?: Partial<BodyDeadlines & ListenerDeadlines>
}

export interface Proxy {
  /** `http://127.0.0.1:8080`, or `unix:/path`. */
  readonly url: string
  /** The client end of a new connection to an `IN_PROCESS` proxy; it expects HTTP/1.1. */
  connect(): Duplex
  /** Serves a connection that the supervisor has accepted. False while draining. */
  take(socket: Socket): boolean
  /** Uses `runtime` for new requests; closes the previous one after its last request. */
  swap(runtime: Runtime): void
  /**
   * Stops accepting, ends GET streams, gives other responses `graceMs`, then aborts the rest and closes the runtime.
   * Later calls wait for the first.
   */
  drain(graceMs: number): Promise<void>
}
