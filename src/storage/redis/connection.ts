import { createRequire } from 'node:module'
import { isIP } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import { monotonicNow } from '../../core/index.ts'
import type * as IoRedis from 'ioredis'
import { StoreError } from '../port.ts'
import type { Endpoint, StoreTls } from './config.ts'
import { withDeadline } from './deadline.ts'
import { toStoreError } from './reply-errors.ts'

// Loaded on first use: it costs 20 MiB.
const load = createRequire(import.meta.url)

/** Interval of liveness checks: the server responds and accepts data. */
const LIVENESS_MS = 1_000

const READ_TIMEOUT = { name: 'readTimeout', of: 'the storage' }

export type Argument = string | Buffer | number
export type Command = readonly [name: string, ...args: Argument[]]

export interface ConnectionOptionsOfStore extends Endpoint {
  /** Name in the certificate; default `host`. */
  readonly serverName?: string
  readonly tls: StoreTls | undefined
  readonly dialTimeoutMs: number
  readonly readTimeoutMs: number
  readonly writeTimeoutMs: number
}

/** One connection. It never reconnects and never repeats a command. */
export interface Connection {
  readonly endpoint: Endpoint
  /**
   * Returns the reply; strings are buffers. Throws `StoreError`, `timeout` after `timeoutMs` (default: the read
   * timeout).
   */
  call(command: Command, timeoutMs?: number): Promise<unknown>
  /** Subscribes to a channel; only for a dedicated connection. */
  subscribe(channel: string): Promise<void>
  unsubscribe(channel: string): Promise<void>
  onMessage(listener: (channel: string, message: string) => void): void
  readonly isOpen: boolean
  readonly closed: Promise<void>
  /** Closes it at once; pending replies fail with `unavailable`. */
  destroy(): void
}

/** Connects within the dial timeout. Sends no command, not even credentials. Throws `StoreError` `unavailable`. */
export async function openConnection(options: ConnectionOptionsOfStore): Promise<Connection> {
  const { host, port, dialTimeoutMs, readTimeoutMs, writeTimeoutMs } = options
  const endpoint = { host, port }
  const { Redis } = load('ioredis') as typeof IoRedis
  const redis = new Redis({
    host,
    port,
    ...(options.tls === undefined ? {} : { tls: tlsOptions(options.tls, options.serverName ?? host) }),
    lazyConnect: true,
    protocol: 2,
    connectTimeout: dialTimeoutMs,
    disconnectTimeout: 0,
    // `link.ts` decides on reconnects and queueing, not the library.
    retryStrategy: null,
    enableOfflineQueue: false,
    enableReadyCheck: false,
    autoResubscribe: false,
    autoResendUnfulfilledCommands: false,
    disableClientInfo: true,
  })
  let firstError: unknown
  redis.on('error', (error) => (firstError ??= error))
  const closed = new Promise<void>((resolve) => redis.once('end', resolve))
  try {
    await withDeadline(
      redis.connect(),
      dialTimeoutMs,
      () => new StoreError('unavailable', { cause: 'ETIMEDOUT', endpoint }),
    )
  } catch (error) {
    redis.disconnect()
    throw toStoreError(firstError ?? error, endpoint)
  }

  let isOpen = true
  let waiting = 0
  let lastReplyAt = monotonicNow()
  let stuckSince: number | undefined
  const destroy = () => {
    isOpen = false
    redis.disconnect()
  }

  const call = async (command: Command, timeoutMs = readTimeoutMs): Promise<unknown> => {
    const setting = timeoutMs === readTimeoutMs ? READ_TIMEOUT : undefined
    if (!isOpen) throw new StoreError('unavailable', { endpoint })
    const [name, ...args] = command
    waiting += 1
    try {
      const reply = await withDeadline(
        redis.callBuffer(name, ...args),
        timeoutMs,
        () => new StoreError('timeout', { endpoint, limit: { amount: timeoutMs, unit: 'ms', setting } }),
      )
      lastReplyAt = monotonicNow()
      return reply
    } catch (error) {
      const failure = toStoreError(error, endpoint)
      if (failure.kind !== 'timeout' && failure.kind !== 'unavailable') lastReplyAt = monotonicNow()
      throw failure
    } finally {
      waiting -= 1
    }
  }

  const looking = setInterval(() => {
    const now = monotonicNow()
    stuckSince = redis.stream.writableLength === 0 ? undefined : (stuckSince ?? now)
    const isStuck = stuckSince !== undefined && now - stuckSince >= writeTimeoutMs
    const isSilent = now - lastReplyAt >= readTimeoutMs + LIVENESS_MS
    if (isStuck || (isSilent && waiting > 0)) return destroy()
    // The check above detects the silence, before this deadline.
    if (waiting === 0) call(['ping'], 2 * (readTimeoutMs + LIVENESS_MS)).catch(() => undefined)
  }, LIVENESS_MS)
  looking.unref()
  void closed.finally(() => {
    isOpen = false
    clearInterval(looking)
  })

  return {
    endpoint,
    call,
    subscribe: (channel) => listening(redis.subscribe(channel), readTimeoutMs),
    unsubscribe: (channel) => listening(redis.unsubscribe(channel), readTimeoutMs),
    onMessage: (listener) => void redis.on('message', listener),
    get isOpen() {
      return isOpen
    },
    closed,
    destroy,
  }
}

/** TLS 1.2 or newer. A configured CA replaces the system's; throws while it is unreadable. */
function tlsOptions(tls: StoreTls, serverName: string): ConnectionOptions {
  return {
    minVersion: 'TLSv1.2',
    rejectUnauthorized: !tls.insecureSkipVerify,
    ...(tls.ca === undefined ? {} : { ca: tls.ca.current().reveal() }),
    // An address is not a server name (RFC 6066 §3); the certificate's addresses are checked instead.
    ...(isIP(serverName) === 0 ? { servername: serverName } : {}),
  }
}

async function listening(work: Promise<unknown>, timeoutMs: number): Promise<void> {
  try {
    await withDeadline(work, timeoutMs, () => new StoreError('timeout'))
  } catch (error) {
    throw toStoreError(error)
  }
}
