import { monotonicNow } from '../../core/index.ts'
import type { RedisParts } from './parts.ts'
import { check, type Store, StoreError } from '../port.ts'
import { createSubscriptions } from '../subscriptions.ts'
import type { Command, Connection } from './connection.ts'
import type { UseOptions } from './link.ts'
import { decodeKept, decodeRecord, encodeRecord, fenceDigits, newVersion, versionArgument } from './records.ts'
import { ReplyError } from './reply-errors.ts'
import { ADMIT, COMPARE_AND_SET, MEMBERS, REMOVE, runScript, type Script, TOUCH } from './scripts.ts'

/** Minimum interval of these log lines. */
const TYPE_LOG_MS = 60_000
const AGAIN: UseOptions = { isRepeatable: true }
const ONCE: UseOptions = { isRepeatable: false }

/** Prefix of all keys of a scope; the braces keep them in one slot. */
export const keyPrefix = (scope: string): string => `extauth:{${scope}}:`

/**
 * The store of one scope in Redis or Valkey: its keys start with `extauth:{scope}:`, where the braces keep them in one
 * slot. `onClose` is called once.
 */
export function createRedisStore(parts: RedisParts, scope: string, onClose: () => Promise<void>): Store {
  const { link, locks, messages } = parts
  const prefix = keyPrefix(scope)
  const recordOf = (key: string) => {
    check.name(key)
    return `${prefix}v:${key}`
  }
  const setsOf = (collection: string) => {
    check.name(collection)
    return ['new', 'used', 'bytes'].map((set) => `${prefix}c:${collection}:${set}`)
  }
  // Messages do not belong to a database.
  const channelOf = (channel: string) => {
    check.name(channel)
    return `${prefix}m:${parts.db}:${channel}`
  }
  const subscriptions = createSubscriptions((channel, listener) => messages.subscribe(channelOf(channel), listener))
  let isClosed = false
  let typeLoggedAt = -Infinity

  /** Converts thrown errors to rejections, and rejects after close. */
  const open = async <T>(step: () => Promise<T>): Promise<T> => {
    if (isClosed) throw new StoreError('unavailable', { cause: 'closed' })
    return step()
  }
  const read = (command: Command, options: UseOptions) => link.use((connection) => connection.call(command), options)
  const write = (command: Command, options: UseOptions) =>
    parts.write((connection) => connection.call(command), options)
  const writeScript = (script: Script, keys: readonly string[], args: Parameters<typeof runScript>[3]) =>
    parts.write((connection) => runScript(connection, script, keys, args), AGAIN)

  /** A key of a different type counts as missing: a write replaces it. */
  const unlessOtherType = async <T>(key: string, work: Promise<T>): Promise<T | undefined> => {
    try {
      return await work
    } catch (error) {
      if (!(error instanceof ReplyError) || error.code !== 'WRONGTYPE') throw error
      const now = monotonicNow()
      if (now - typeLoggedAt >= TYPE_LOG_MS) {
        typeLoggedAt = now
        parts.log.warn({ key, ...error.endpoint }, 'store key is not a string, treated as missing')
      }
      return undefined
    }
  }

  const compareAndSet: Store['compareAndSet'] = (key, version, value, ttlMs, fence) =>
    open(async () => {
      const keys = [recordOf(key)]
      check.value(value)
      check.ttl(ttlMs)
      const digits = fence === undefined ? '' : fenceDigits(fence)
      const reply = await writeScript(COMPARE_AND_SET, keys, [
        versionArgument(version),
        newVersion(),
        digits,
        value,
        ttlMs,
      ])
      return reply === 1
    })

  return {
    get: (key) =>
      open(async () => {
        const record = recordOf(key)
        // One round trip: both are sent before the first reply.
        const ask = (connection: Connection) =>
          Promise.all([connection.call(['get', record]), connection.call(['pttl', record])])
        const replies = await unlessOtherType(record, link.use(ask, AGAIN))
        return replies && decodeKept(...replies)
      }),
    put: (key, value, ttlMs) =>
      open(async () => {
        check.value(value)
        check.ttl(ttlMs)
        await write(['set', recordOf(key), encodeRecord(newVersion(), value), 'PX', ttlMs], AGAIN)
      }),
    putIfAbsent: (key, value, ttlMs) => compareAndSet(key, undefined, value, ttlMs),
    // Not repeated: the first attempt may have succeeded.
    take: (key) =>
      open(async () => {
        const record = recordOf(key)
        return decodeRecord(await unlessOtherType(record, write(['getdel', record], ONCE)))
      }),
    compareAndSet,
    delete: (...keys) =>
      open(async () => {
        if (keys.length > 0) await write(['del', ...keys.map(recordOf)], AGAIN)
      }),
    admit: (collection, key, value, ttlMs, bound) =>
      open(async () => {
        const keys = [recordOf(key), ...setsOf(collection)]
        check.value(value)
        check.ttl(ttlMs)
        const record = encodeRecord(newVersion(), value)
        const evicts = bound.evicts === false ? 0 : 1
        const reply = await writeScript(ADMIT, keys, [record, ttlMs, bound.members, bound.bytes, value.length, evicts])
        const [isThere, evicted, members, bytes] = (Array.isArray(reply) ? reply : []).map(Number)
        return {
          outcome: isThere === 1 ? 'added' : 'full',
          evicted: evicted ?? 0,
          members: members ?? 0,
          bytes: bytes ?? 0,
        }
      }),
    touch: (collection, key, ttlMs) =>
      open(async () => {
        check.ttl(ttlMs)
        await writeScript(TOUCH, [recordOf(key), ...setsOf(collection)], [ttlMs])
      }),
    remove: (collection, key) =>
      open(async () => {
        await writeScript(REMOVE, [recordOf(key), ...setsOf(collection)], [])
      }),
    members: (collection, offset, limit) =>
      open(async () => {
        const sets = setsOf(collection)
        const run = (connection: Connection) =>
          runScript(connection, MEMBERS, [recordOf(collection), ...sets], [offset, limit])
        const reply = await link.use(run, AGAIN)
        return (Array.isArray(reply) ? reply : []).map((member) => String(member).slice(`${prefix}v:`.length))
      }),
    lock: (name, { ttlMs, waitMs }) =>
      open(async () => {
        check.name(name)
        check.ttl(ttlMs)
        return locks.acquire(`${prefix}l:${name}`, ttlMs, waitMs)
      }),
    getOrLock: (key, staleVersion, ttlMs) =>
      open(async () => {
        check.ttl(ttlMs)
        return locks.acquireUnless(recordOf(key), staleVersion, `${prefix}l:${key}`, ttlMs)
      }),
    publish: (channel, message) =>
      open(async () => {
        return Number(await read(['publish', channelOf(channel), message], AGAIN))
      }),
    subscribe: subscriptions.subscribe,
    health() {
      const detail = isClosed ? 'closed' : parts.problem
      return { isUp: detail === undefined, kind: 'kvstore', detail, endpoint: link.endpoint }
    },
    async close() {
      if (isClosed) return
      isClosed = true
      subscriptions.close()
      await onClose()
    },
  }
}
