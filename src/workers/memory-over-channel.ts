import { type MakerLock, type Store, StoreError, type StoreErrorKind, type StoreListener } from '../storage/index.ts'
import { causeOf, type Log } from '../core/index.ts'
import { NoAnswer, type Peer, RemoteError } from './peer.ts'
import type { StoreMethods } from './memory-of-workers.ts'

/** Added to the wait of an operation itself, in milliseconds. */
const ANSWER_MS = 5_000

/** A worker's view of the supervisor's memory store. */
export interface MemoryOverChannel {
  /** The memory store of one scope. */
  readonly open: (scope: string) => Store
  /** The supervisor reports a message for subscription `id`. */
  onMessage(id: number, message: string): void
}

/** Stores with entries in the supervisor, shared by all workers. Each operation is one request. */
export function createMemoryOverChannel(peer: Peer<StoreMethods>, log: Log): MemoryOverChannel {
  const listeners = new Map<number, StoreListener>()
  let subscriptions = 0
  let isClosed = false
  let isGone = false
  /** Scopes whose last write exceeded the memory. */
  const full = new Set<string>()

  const ask: Peer<StoreMethods>['ask'] = (name, args, deadlineMs) => {
    if (isClosed) return Promise.reject(new StoreError('unavailable'))
    return peer.ask(name, args, deadlineMs).catch((error: unknown) => {
      if (error instanceof NoAnswer && error.reason === 'gone') isGone = true
      throw asStoreError(error)
    })
  }
  const write: Peer<StoreMethods>['ask'] = (name, args, deadlineMs) => {
    const scope = String(args[0])
    const asked = ask(name, args, deadlineMs)
    asked.then(
      () => full.delete(scope),
      (error: unknown) => error instanceof StoreError && error.kind === 'overloaded' && full.add(scope),
    )
    return asked
  }
  const held = (scope: string, { id, fence }: { id: number; fence: number }): MakerLock => {
    let isMine = true
    return {
      fence,
      get isHeld() {
        return isMine
      },
      finish(value, ttlMs) {
        isMine = false
        return ask('finish', [scope, id, value, ttlMs])
      },
      async release() {
        if (!isMine) return
        isMine = false
        // A supervisor that exited has released the lock.
        await ask('release', [scope, id]).catch(() => undefined)
      },
    }
  }

  return {
    onMessage(id, message) {
      try {
        listeners.get(id)?.onMessage(message)
      } catch (error) {
        log.error({ error: causeOf(error) }, 'store listener failed')
      }
    },
    open: (scope) => ({
      get: (key) => ask('get', [scope, key]),
      put: (key, value, ttlMs) => write('put', [scope, key, value, ttlMs]),
      putIfAbsent: (key, value, ttlMs) => write('putIfAbsent', [scope, key, value, ttlMs]),
      take: (key) => ask('take', [scope, key]),
      compareAndSet: (key, version, value, ttlMs, fence) =>
        write('compareAndSet', [scope, key, version, value, ttlMs, fence]),
      delete: (...keys) => ask('delete', [scope, keys]),
      admit: (collection, key, value, ttlMs, bound) => write('admit', [scope, collection, key, value, ttlMs, bound]),
      touch: (collection, key, ttlMs) => ask('touch', [scope, collection, key, ttlMs]),
      remove: (collection, key) => ask('remove', [scope, collection, key]),
      members: (collection, offset, limit) => ask('members', [scope, collection, offset, limit]),
      async lock(name, options) {
        const granted = await ask('lock', [scope, name, options], options.waitMs + ANSWER_MS)
        return granted && held(scope, granted)
      },
      async getOrLock(key, staleVersion, ttlMs) {
        const found = await ask('getOrLock', [scope, key, staleVersion, ttlMs])
        if (found.kind !== 'lock') return found
        return { kind: 'lock', held: held(scope, found.granted) }
      },
      publish: (channel, message) => ask('publish', [scope, channel, message]),
      subscribe(channel, listener) {
        const id = ++subscriptions
        listeners.set(id, listener)
        ask('subscribe', [scope, channel, id]).catch(() => listener.onGap())
        return {
          get isActive() {
            return !isGone
          },
          close() {
            listeners.delete(id)
            ask('unsubscribe', [id]).catch(() => undefined)
          },
        }
      },
      health() {
        const detail = isClosed
          ? 'closed'
          : isGone
            ? 'the supervisor has exited'
            : full.has(scope)
              ? 'its memory is full'
              : undefined
        return { isUp: detail === undefined, kind: 'memory', detail }
      },
      close() {
        isClosed = true
        return Promise.resolve()
      },
    }),
  }
}

const KINDS: ReadonlySet<unknown> = new Set<StoreErrorKind>([
  'unavailable',
  'timeout',
  'overloaded',
  'too_few_replicas',
  'refused',
  'unknown_key',
])

function asStoreError(error: unknown): unknown {
  if (error instanceof NoAnswer) return new StoreError(error.reason === 'late' ? 'timeout' : 'unavailable')
  if (!(error instanceof RemoteError)) return error
  const { kind } = error.members
  if (KINDS.has(kind)) return new StoreError(kind as StoreErrorKind)
  return error.name === 'RangeError' ? new RangeError(error.message) : error
}
