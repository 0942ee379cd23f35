import {
  causeOf,
  type Clock,
  isFailed,
  type Log,
  type MonotonicMs,
  type RequestObserver,
  type Sealed,
} from '../core/index.ts'
import { createFailures, type Failures, type Outcome } from './failures.ts'
import { createGatherer } from './live.ts'
import type { RequestRecord, Summary } from './record.ts'
import { recordOf, type RecordDeps, summaryOf } from './record-of.ts'
import { createRing } from './ring.ts'
import { WatchedRequest, type Watcher } from './watched-request.ts'

/** Number of newest requests to keep. */
export const MAX_RECORDS = 500

export interface CaptureOptions {
  /** `heads`: no bodies. */
  readonly mode: 'heads' | 'bodies'
  /** Memory limit of all records in bytes; bodies of open requests may take as much again. */
  readonly maxBytes: number
  readonly showClaims: boolean
  readonly clock: Clock
  readonly log: Log
  /** Monotonic milliseconds, with fractions. */
  readonly monotonicMs: () => MonotonicMs
  readonly decisionOf: RecordDeps['decisionOf']
  readonly rulesOf: RecordDeps['rulesOf']
  readonly signingOf: (sealed: Sealed) => ReturnType<RecordDeps['signingOf']>
}

/** Updates for a viewer of the list. */
export interface Batch {
  readonly requests: readonly Summary[]
  /** Records evicted since the last clearing. */
  readonly dropped: number
  /** Ids of requests that were evicted since the last batch. */
  readonly gone: readonly string[]
  /** Number of updates that were skipped for rate; the list contains these requests. */
  readonly skipped: number
  /** Failures so far, so that plots are refreshed after a new one. */
  readonly failures: number
}

/** Updates for a viewer of one request. */
export type Step = { readonly kind: 'text'; readonly text: string } | { readonly kind: 'changed' }

/** Requests that ended, and requests in flight. */
export interface Capture {
  readonly observer: RequestObserver
  readonly failures: Failures
  /** Newest last. */
  list(): Batch
  /** The current state; undefined for an unknown id. */
  find(id: string): RequestRecord | undefined
  /** Ids of requests whose stored bodies contain this text, case-insensitively. */
  search(text: string): readonly string[]
  /** Drops the requests that ended. */
  clear(): void
  /** Calls back with changes in batches; returns the function that stops it. */
  follow(onBatch: (batch: Batch) => void, onClear: () => void): () => void
  /** Calls back with each step of one open request; returns the function that stops it. */
  followOne(id: string, onStep: (step: Step) => void): () => void
  close(): void
}

/** Observes every request and keeps the newest, masked. */
export function createCapture(options: CaptureOptions): Capture {
  const { mode, maxBytes, clock } = options
  let gone: string[] = []
  // Viewers hold no more records than this limit.
  const onDropped = (id: string): void => {
    if (followers.size > 0) gone.push(id)
    if (gone.length > 4 * MAX_RECORDS) gone = gone.slice(-2 * MAX_RECORDS)
  }
  const ring = createRing({ maxRecords: MAX_RECORDS, maxBytes, onDropped })
  const failures = createFailures(clock)
  const open = new Map<string, WatchedRequest>()
  const followers = new Set<{ onBatch: (batch: Batch) => void; onClear: () => void }>()
  const ofOne = new Map<string, Set<(step: Step) => void>>()
  let taken = 0
  const budget = {
    take: (bytes: number) => (taken + bytes > maxBytes ? false : ((taken += bytes), true)),
    release: (bytes: number) => void (taken -= bytes),
  }
  const deps: RecordDeps = { ...options, keepsBodies: mode === 'bodies', budget }

  const batch = (requests: readonly Summary[], skipped: number, left: readonly string[] = []): Batch => ({
    requests,
    dropped: ring.dropped,
    gone: left,
    skipped,
    failures: failures.count,
  })
  const now = (id: string): Summary | undefined => {
    const watched = open.get(id)
    return watched === undefined ? ring.find(id)?.summary : summaryOf(watched, deps)
  }
  const gatherer = createGatherer<string>(MAX_RECORDS, (ids, left) => {
    const requests = ids.map(now).filter((summary) => summary !== undefined)
    const evicted = gone
    gone = []
    for (const { onBatch } of followers) onBatch(batch(requests, left, evicted))
  })
  const tell = (id: string, step: Step): void => {
    for (const onStep of ofOne.get(id) ?? []) onStep(step)
  }

  /** A request that can't be recorded must still be answered. */
  const kept = (watched: WatchedRequest): RequestRecord | undefined => {
    try {
      return recordOf(watched, deps)
    } catch (error) {
      options.log.error({ requestId: watched.id, cause: causeOf(error) }, 'the inspector could not keep a request')
      return undefined
    }
  }

  const watcher: Watcher = {
    keepsBodies: deps.keepsBodies,
    budget,
    monotonicMs: options.monotonicMs,
    changed({ id }) {
      if (followers.size > 0) gatherer.add(id)
      if (ofOne.size > 0) tell(id, { kind: 'changed' })
    },
    grew({ id }, text) {
      if (ofOne.size > 0) tell(id, { kind: 'text', text })
    },
    finished(watched) {
      const { id } = watched
      open.delete(id)
      const record = kept(watched)
      watched.release()
      if (record === undefined) return
      ring.push(record)
      const { route, status, reason } = record.summary
      failures.ended(outcomeOf(status, reason))
      if (isFailed(status, reason)) {
        const why = reason === '' ? `status_${status}` : reason
        failures.note(route, { atMs: clock.now(), requestId: id, status, reason: why })
      }
      watcher.changed(watched)
    },
  }
  return {
    failures,
    observer: {
      arrived(inbound) {
        const watched = new WatchedRequest(inbound, watcher)
        open.set(watched.id, watched)
        return watched
      },
    },
    list: () => {
      const over = ring.all().map(({ summary }) => summary)
      const going = [...open.values()].slice(-MAX_RECORDS).map((watched) => summaryOf(watched, deps))
      return batch(
        [...over, ...going].toSorted((one, other) => one.atMs - other.atMs),
        0,
      )
    },
    find(id) {
      const watched = open.get(id)
      return watched === undefined ? ring.find(id) : recordOf(watched, deps)
    },
    search(text) {
      const wanted = text.toLowerCase()
      const has = ({ requestBody, responseBody }: RequestRecord): boolean =>
        [requestBody, responseBody].some((body) => body?.text.toLowerCase().includes(wanted) === true)
      const going = [...open.values()].slice(-MAX_RECORDS).map((watched) => recordOf(watched, deps))
      return [...ring.search(wanted), ...going.filter(has).map(({ summary }) => summary.id)]
    },
    clear() {
      ring.clear()
      for (const { onClear } of followers) onClear()
    },
    follow(onBatch, onClear) {
      const follower = { onBatch, onClear }
      followers.add(follower)
      return () => void followers.delete(follower)
    },
    followOne(id, onStep) {
      const all = ofOne.get(id) ?? new Set()
      ofOne.set(id, all.add(onStep))
      return () => {
        all.delete(onStep)
        if (all.size === 0) ofOne.delete(id)
      }
    },
    close() {
      gatherer.close()
      followers.clear()
      ofOne.clear()
      ring.clear()
    },
  }
}

/** A response that was aborted after a success status also counts as a server failure. */
function outcomeOf(status: number, reason: string): Outcome {
  if (reason === 'not_connected') return reason
  return isFailed(status, reason) ? (status >= 400 && status < 500 ? '4xx' : '5xx') : 'ok'
}
