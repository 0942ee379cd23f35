import type { Clock, Log, Metrics, SecretHandle } from '../../core/index.ts'

export interface Endpoint {
  /** Name or address, IPv6 without brackets. */
  readonly host: string
  readonly port: number
}

/** TLS to a master or to sentinels: at least TLS 1.2. */
export interface StoreTls {
  /** PEM; replaces the system's CA certificates. Connections fail while it is unreadable. */
  readonly ca: SecretHandle | undefined
  readonly insecureSkipVerify: boolean
}

/** `storage.kvstore` of the specification with resolved references. */
export interface RedisConfig {
  /** Credentials of the ACL user, sent only to the master. Without a name, those of the default user. */
  readonly username?: SecretHandle | undefined
  readonly password: SecretHandle
  /** A single server instead of sentinels; its operator handles failover. */
  readonly server?: Endpoint | undefined
  readonly masterName: string
  readonly db: number
  /** As configured. A name may have several addresses, which are all queried. */
  readonly sentinels: readonly Endpoint[]
  /** For the master; undefined: plain TCP. */
  readonly tls: StoreTls | undefined
  /** For the sentinels, including discovered ones; undefined: plain TCP, regardless of `tls`. */
  readonly sentinelTls: StoreTls | undefined
  /** Connect timeout, TLS included. */
  readonly dialTimeoutMs: number
  /** Response timeout; a connection silent for longer is closed. */
  readonly readTimeoutMs: number
  /** Write timeout. */
  readonly writeTimeoutMs: number
  /** Number of replicas that must have a write; 0: none. */
  readonly waitReplicas: number
}

/** Dependencies of all parts of the Redis store. */
export interface RedisRuntime {
  /** Compared with the store's clock. */
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  /** In [0, 1); jitter of reconnects and waits. */
  readonly random: () => number
}
