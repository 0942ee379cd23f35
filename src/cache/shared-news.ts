import { setTimeout as pause } from 'node:timers/promises'
import type { Clock, Log, Metrics } from '../core/index.ts'
import { createFreshness } from './freshness.ts'
import { createPurgeMarks } from './shared-marks.ts'
import type { SharedSeal, SharedStore } from './shared-ports.ts'
import type { Ownership, PurgeFilter } from './slot.ts'

const CHANNEL = 'credentials'
const PURGED = 'purged'
/** Who knows of purges that the store has lost writes them down for who begins. */
const JOINED = 'joined'
const ROTATED = 'rotated '
/** While messages are not received, what was purged is read so often. */
const READ_MS = 1_000
/** Every so many of these it is read in any case. */
const READ_EACH = 60
/** A value from before the last purge makes it be looked at, at most this often. */
const LOOK_PAUSE_MS = 1_000
/** Who purges waits so long to hear whether the others will. */
const TOLD_WITHIN_MS = 2_000

/** What replicas tell each other: purges, and secrets that changed. */
export interface SharedNews {
  /** Number of the last purge that is known here. */
  readonly epoch: number
  covers(owner: Ownership, epoch: number): boolean
  /** Whether it is known what was purged, and when it will be; rejects when that can't be learnt. */
  readonly isKnown: boolean
  readonly known: Promise<void>
  /** A value with this number lies in the store: one from another time than ours makes us look at the record. */
  saw(epoch: number): void
  /** Learns what others told, and tells what they could not be told. Throws what the store throws. */
  catchUp(): Promise<void>
  /** The number of processes that received it; undefined after 2 s without the store. Never rejects. */
  purge(filter: PurgeFilter): Promise<number | undefined>
  announceRotation(config: string): Promise<number | undefined>
  close(): void
}

export interface SharedNewsOptions {
  readonly store: SharedStore
  readonly seal: SharedSeal
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  onPurge(filter: PurgeFilter): void
  onRotation(config: string | undefined): void
  /** Nothing can be learnt or told now. */
  onTrouble(error: unknown): void
}

/** Begins to listen; nothing is taken from the store before `known` is fulfilled. */
export function createSharedNews(options: SharedNewsOptions): SharedNews {
  const { store, log, clock } = options
  const restored = options.metrics
    .counter(
      'extauth_shared_credentials_restored_total',
      'How often the store had lost what was purged, and a replica that knew wrote it again.',
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
      log.warn(
        {},
        'the store had lost what was purged (evicted, deleted, or an older state put back); it is written again',
      )
      quietly(store.publish(CHANNEL, PURGED))
    },
  })

  const freshness = createFreshness(() => subscription.isActive)
  const sync = async () => {
    const startedAt = performance.now()
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
    const judge = async () => {
      try {
        await learning
        if (known === learning) isKnown = true
      } catch (error) {
        options.onTrouble(error)
      }
    }
    void judge()
    return learning
  }

  const tell = async (message: string): Promise<number | undefined> => {
    try {
      if (message === PURGED) await sync()
      return await store.publish(CHANNEL, message)
    } catch (error) {
      untold.add(message)
      log.warn({}, 'the other replicas cannot be told of a change now; they are as soon as the store answers')
      options.onTrouble(error)
      return undefined
    }
  }
  const toldInTime = (message: string) =>
    Promise.race([tell(message), pause(TOLD_WITHIN_MS, undefined, { ref: false })])

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
    // What is not known is learnt before anything is taken from the store again.
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
      return toldInTime(PURGED)
    },
    announceRotation: (config) => toldInTime(`${ROTATED}${config}`),
    close() {
      clearInterval(watching)
      subscription.close()
    },
  }
}
