import { setTimeout as pause } from 'node:timers/promises'
import type { Clock, Log, Metrics } from '../core/index.ts'
import { createPurgeMarks } from './shared-marks.ts'
import type { SharedSeal, SharedStore } from './shared-ports.ts'
import type { Ownership, PurgeFilter } from './slot.ts'

const CHANNEL = 'credentials'
const PURGED = 'purged'
/** Who knows of purges that the store has lost writes them down for who begins. */
const JOINED = 'joined'
const ROTATED = 'rotated '
/** What was purged is looked at so often, whatever was heard. */
const WATCH_MS = 60_000
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
  /** Whether the others were told; false after 2 s. Never rejects. */
  purge(filter: PurgeFilter): Promise<boolean>
  announceRotation(config: string): Promise<boolean>
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

  const quietly = (work: Promise<void>) => void work.catch(() => undefined)
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

  const catchUp = async () => {
    await marks.sync()
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

  const tell = async (message: string): Promise<boolean> => {
    try {
      if (message === PURGED) await marks.sync()
      await store.publish(CHANNEL, message)
      return true
    } catch (error) {
      untold.add(message)
      log.warn({}, 'the other replicas cannot be told of a change now; they are as soon as the store answers')
      options.onTrouble(error)
      return false
    }
  }
  const toldInTime = (message: string) => Promise.race([tell(message), pause(TOLD_WITHIN_MS, false, { ref: false })])

  const subscription = store.subscribe(CHANNEL, {
    onMessage(message) {
      if (message === PURGED) quietly(learn())
      else if (message === JOINED) quietly(marks.sync())
      else if (message.startsWith(ROTATED)) options.onRotation(message.slice(ROTATED.length))
    },
    onGap() {
      quietly(learn())
      options.onRotation(undefined)
    },
  })
  const watching = setInterval(() => quietly(marks.sync()), WATCH_MS)
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
        quietly(marks.sync())
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
