import { setTimeout as pause } from 'node:timers/promises'
import { type Clock, type Log, type Metrics, monotonicNow } from '../core/index.ts'
import { createFreshness } from './freshness.ts'
import { createPurgeMarks } from './shared-marks.ts'
import type { SharedSeal, SharedStore } from './shared-ports.ts'
import type { Ownership, PurgeFilter } from './slot.ts'

const CHANNEL = 'credentials'
const PURGED = 'purged'
/** Replicas that know purges which the store has lost write them for a new replica. */
const JOINED = 'joined'
const ROTATED = 'rotated '
/** Poll interval of the purge log without messages. */
const READ_MS = 1_000
/** Polls in any case at every n-th interval. */
const READ_EACH = 60
/** A value from before the last purge triggers a read, at most this often. */
const LOOK_PAUSE_MS = 1_000
/** Time to wait for the notification of other replicas. */
const NOTIFY_TIMEOUT_MS = 2_000

/** Notifications between replicas: purges and changed secrets. */
export interface InvalidationChannel {
  /** Number of the last known purge. */
  readonly epoch: number
  covers(owner: Ownership, epoch: number): boolean
  /** Whether purges are known and notifications arrive; rejects if that cannot be determined. */
  readonly isKnown: boolean
  readonly known: Promise<void>
  /** A stored value with this number was read: an unknown number triggers a read of the purge log. */
  saw(epoch: number): void
  /** Reads missed notifications and sends pending ones. Throws the errors of the store. */
  catchUp(): Promise<void>
  /** Returns the number of receiving processes; undefined after 2 s without the store. Never rejects. */
  purge(filter: PurgeFilter): Promise<number | undefined>
  announceRotation(config: string): Promise<number | undefined>
  close(): void
}

export interface InvalidationChannelOptions {
  readonly store: SharedStore
  readonly seal: SharedSeal
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  onPurge(filter: PurgeFilter): void
  onRotation(config: string | undefined): void
  /** Notifications are not possible. */
  onTrouble(error: unknown): void
}

/** Starts to listen; stored values must not be used before `known` resolves. */
export function createInvalidationChannel(options: InvalidationChannelOptions): InvalidationChannel {
  const { store, log, clock } = options
  const restored = options.metrics
    .counter(
      'extauth_shared_credentials_restored_total',
      'Times that the store had lost the purge log and a replica restored it.',
      [],
    )
    .with()
  const untold = new Set<string>()
  let lookAfterMs = -Infinity

  const quietly = (work: Promise<unknown>) => void work.catch(() => undefined)
  const marks = createPurgeMarks({
    ...options,
    onRestored() {
      restored.add()
      log.warn({}, 'purge log lost by the store (evicted, deleted or reset to an older state), restoring it')
      quietly(store.publish(CHANNEL, PURGED))
    },
  })

  const freshness = createFreshness(() => subscription.isActive)
  const sync = async () => {
    const startedAt = monotonicNow()
    await marks.sync()
    freshness.read(startedAt)
  }

  const catchUp = async () => {
    await sync()
    for (const message of untold) {
      await store.publish(CHANNEL, message)
      untold.delete(message)
    }
  }
  let known: Promise<void> = Promise.resolve()
  let isKnown = false
  const learn = (): Promise<void> => {
    isKnown = false
    const learning = catchUp()
    known = learning
    const settle = async () => {
      try {
        await learning
        if (known === learning) isKnown = true
      } catch (error) {
        options.onTrouble(error)
      }
    }
    void settle()
    return learning
  }

  const notify = async (message: string): Promise<number | undefined> => {
    try {
      if (message === PURGED) await sync()
      return await store.publish(CHANNEL, message)
    } catch (error) {
      untold.add(message)
      log.warn({}, 'other replicas not notified of a change, retrying when the store responds')
      options.onTrouble(error)
      return undefined
    }
  }
  const notifyInTime = (message: string) =>
    Promise.race([notify(message), pause(NOTIFY_TIMEOUT_MS, undefined, { ref: false })])

  const subscription = store.subscribe(CHANNEL, {
    onMessage(message) {
      if (message === PURGED) quietly(learn())
      else if (message === JOINED) quietly(sync())
      else if (message.startsWith(ROTATED)) options.onRotation(message.slice(ROTATED.length))
    },
    onGap() {
      freshness.missed()
      quietly(learn())
      options.onRotation(undefined)
    },
  })
  let ticks = 0
  const watching = setInterval(() => {
    ticks = (ticks + 1) % READ_EACH
    // Missed purges are read before stored values are used again.
    if (!freshness.isFresh) quietly(learn())
    else if (ticks === 0 || !freshness.isCaughtUp) quietly(sync())
  }, READ_MS)
  watching.unref()
  untold.add(JOINED)
  quietly(learn())

  return {
    get epoch() {
      return marks.epoch
    },
    covers: (owner, epoch) => marks.covers(owner, epoch),
    get isKnown() {
      return isKnown
    },
    get known() {
      return known
    },
    saw(epoch) {
      if (epoch > marks.epoch) {
        marks.saw(epoch)
        quietly(learn())
      } else if (epoch < marks.epoch && clock.now() >= lookAfterMs) {
        lookAfterMs = clock.now() + LOOK_PAUSE_MS
        quietly(sync())
      }
    },
    catchUp: learn,
    purge(filter) {
      marks.add(filter)
      return notifyInTime(PURGED)
    },
    announceRotation: (config) => notifyInTime(`${ROTATED}${config}`),
    close() {
      clearInterval(watching)
      subscription.close()
    },
  }
}
