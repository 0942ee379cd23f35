import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Clock, LocalHandler, Log, Metrics, RequestObserver, Route, Secret } from '../core/index.ts'
import type { ListenAddress, ListenerDeadlines, TlsMaterial } from '../listen/index.ts'

/** Everything that a reload replaces: made whole before it is swapped in. */
export interface Runtime {
  readonly routes: readonly Route[]
  /** Endpoints of our own, decided before the routes; each address once. */
  readonly localHandlers: readonly LocalHandler[]
  /** Called once, when the last request that uses it is done. */
  close(): Promise<void>
}

export interface ListenOptions {
  /** `host:port`, `:port`, `unix:/path`, or `IN_PROCESS`: no listener, only `Proxy.connect`. */
  readonly address: string | ListenAddress
  readonly tls?: TlsMaterial | undefined
  /** The URL of a supervisor that accepts there and hands connections to `Proxy.take`. Default: it listens itself. */
  readonly acceptedAt?: string | undefined
  /** Origins that browsers may call from, or `*`. */
  readonly allowedOrigins: readonly string[]
  /** Host names, with or without port, that are served beside the ones that the bind implies. */
  readonly allowedHosts: readonly string[]
  readonly headerLimitBytes: number
  /** Ranges in CIDR notation: peers that may say for whom they ask. Default: nobody may. */
  readonly trustedProxies?: readonly string[]
  /** Most connections at once. Default 10,000. */
  readonly connectionLimit?: number
  /** Bytes of memory for request bodies that are kept, of all requests together. Default 256 MiB. */
  readonly bufferedBodiesBytes?: number
  /** Bytes of memory for answers that wait for their clients, of all together. Default 64 MiB. */
  readonly unreadAnswersBytes?: number
  /** Bytes of memory for streamed bodies that their backends do not read, of all together. Default: as for unread answers. */
  readonly streamedBodiesBytes?: number
}

/** How long a client may take with its body, in milliseconds. */
export interface BodyDeadlines {
  /** For a body that is kept. Default 60 s. */
  readonly keptBodyMs: number
  /** For a body of unknown length, before it is streamed instead of kept. Default 30 ms: who streams waits for an answer. */
  readonly unannouncedBodyMs: number
  /** Between two pieces of a body, unless it is the backend that does not read. Default 30 s. */
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
  /** Of deadlines. Default `STEADY_CLOCK`. */
  readonly steadyClock?: Clock
  readonly log: Log
  readonly metrics: Metrics
  /** A reload removed this route and its last request is over: nothing is counted for it any more. */
  readonly onRouteGone?: (route: Pick<Route, 'name' | 'type'>) => void
  /** Log lines of refused requests name the client's address. Default true. */
  readonly logsClients?: boolean | undefined
  /** Sees every request; none costs nothing. */
  readonly observer?: RequestObserver | undefined
  /** Key of the session ids that clients see; asked per use, so that it can be a secret that appears later. */
  readonly sessionKey: () => Secret
  /** Unguessable request ids; default 96 random bits. */
  readonly newRequestId?: () => string
  readonly deadlines?: Partial<BodyDeadlines & ListenerDeadlines>
}

export interface Proxy {
  /** `http://127.0.0.1:8080`, or `unix:/path`. */
  readonly url: string
  /** The client end of a new connection to a proxy that is `IN_PROCESS`; it is spoken to in HTTP/1.1. */
  connect(): Duplex
  /** Serves a connection that the supervisor has accepted. False once it drains. */
  take(socket: Socket): boolean
  /** New requests use `runtime` from now on; the one before is closed when its last request is done. */
  swap(runtime: Runtime): void
  /**
   * Stops accepting, ends what a GET opened, lets other answers finish within `graceMs`, then cuts what remains and closes
   * the runtime. Later calls wait for the first.
   */
  drain(graceMs: number): Promise<void>
}
