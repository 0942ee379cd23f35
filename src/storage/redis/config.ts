import type { Clock, Log, Metrics, SecretHandle } from '../../core/index.ts'

export interface Endpoint {
  /** Name or address, an IPv6 address without brackets. */
  readonly host: string
  readonly port: number
}

/** TLS to a master or to sentinels: at least TLS 1.2. */
export interface StoreTls {
  /** PEM; replaces the system roots. While it can't be read nothing is connected. */
  readonly ca: SecretHandle | undefined
  readonly insecureSkipVerify: boolean
}

/** `storage.kvstore` of the specification with its references resolved. */
export interface RedisConfig {
  /** Credentials of the ACL user; shown to the master and to nobody else. Without a name they are the default user's. */
  readonly username?: SecretHandle | undefined
  readonly password: SecretHandle
  /** The one server, in place of sentinels; a failover behind its name is its operator's. */
  readonly server?: Endpoint | undefined
  readonly masterName: string
  readonly db: number
  /** As configured; a name may stand for several addresses, each of which is asked. */
  readonly sentinels: readonly Endpoint[]
  /** Towards the master; undefined: plain TCP. */
  readonly tls: StoreTls | undefined
  /** Towards the sentinels, also those that others named; undefined: plain TCP, whatever `tls` says. */
  readonly sentinelTls: StoreTls | undefined
  /** Until a connection is there, TLS included. */
  readonly dialTimeoutMs: number
  /** Until an answer to what was sent; a connection that is silent for longer is given up. */
  readonly readTimeoutMs: number
  /** Until the other side has taken what was sent. */
  readonly writeTimeoutMs: number
  /** So many replicas have what is written before it counts; 0: none. */
  readonly waitReplicas: number
}

/** What every part of the Redis maker needs from the process. */
export interface RedisRuntime {
  /** Compared with the store's. */
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  /** In [0, 1); spreads reconnects and waits. */
  readonly random: () => number
}
