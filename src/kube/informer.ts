import type { WatchEvent } from './answers.ts'
import { causeOf, type Log } from '../core/index.ts'
import { backoffMs } from './backoff.ts'
import type { KubeClient, Selection } from './client.ts'
import { isExpired, isNotFound, isTooNew, KubeError } from './kube-error.ts'
import { isLater, keyOf, type KubeObject, type ResourceType } from './object.ts'
import { pause, systemTimers, type Timers } from './timers.ts'

/** Reasons for an unplanned restart of a watch. */
export const RESTART_REASONS = ['expired', 'lost', 'refused'] as const
export type RestartReason = (typeof RESTART_REASONS)[number]

export interface InformerOptions {
  readonly client: KubeClient
  readonly type: ResourceType
  readonly selection?: Selection
  /** Reduces an object to the needed fields before it is stored. */
  readonly trim?: (object: KubeObject, before: KubeObject | undefined) => KubeObject
  /** An object was added, changed or deleted (`after` undefined). Called for each difference of a new list. */
  readonly onChange: (key: string, before: KubeObject | undefined, after: KubeObject | undefined) => void
  readonly log: Log
  /** An unknown kind counts as an empty collection and is polled. Default false. */
  readonly mayBeMissing?: boolean
  /** 0 ≤ n < 1. Default Math.random. */
  readonly random?: () => number
  readonly timers?: Timers
  /** Maximum silence of a watch in milliseconds; the server sends a bookmark per minute. Default 100,000. */
  readonly silenceMs?: number
  /** Called when a watch restarts for a reason other than its regular end. */
  readonly onRestart?: (reason: RestartReason) => void
}

/** A local copy of a collection that follows the API server across failures. */
export interface Informer {
  readonly type: ResourceType
  get(key: string): KubeObject | undefined
  list(): readonly KubeObject[]
  /**
   * Stores the result of a write before its event, so that decisions use it. Ignored if the watch has a newer version,
   * or if the object is being deleted.
   */
  learn(object: KubeObject): void
  /** True after the first complete list. */
  readonly isSynced: boolean
  /** Resolves after the first complete list. */
  readonly synced: Promise<void>
  /** Why the last list or watch failed; undefined if healthy. For readiness. */
  readonly problem: string | undefined
  close(): void
}

const FIRST_PAUSE_MS = 200
const MOST_PAUSE_MS = 30_000
const DEFAULT_SILENCE_MS = 100_000
/** A watch of this duration resets the failure count. */
const STEADY_MS = 5_000
/** Watches end after 5 to 10 minutes, spread so that they do not renew at once. */
const WATCH_SECONDS = 300

/** Lists, watches, and restarts after every end: aborted, silent, rejected, expired (410), truncated. */
export function createInformer(options: InformerOptions): Informer {
  const { client, type, selection = {}, trim = (object) => object, onChange, log } = options
  const { random = Math.random, timers = systemTimers, silenceMs = DEFAULT_SILENCE_MS } = options
  const objects = new Map<string, KubeObject>()
  const stop = new AbortController()
  const { promise: synced, resolve: markSynced } = Promise.withResolvers<void>()
  let isSynced = false
  let problem: string | undefined
  let failures = 0
  /** Version of list and watch; learned objects may be newer. */
  let seen: string | undefined

  const keep = (object: KubeObject): void => {
    const key = keyOf(object)
    const before = objects.get(key)
    if (before !== undefined && before.metadata.resourceVersion === object.metadata.resourceVersion) return
    const after = trim(object, before)
    objects.set(key, after)
    onChange(key, before, after)
  }
  const forget = (key: string): void => {
    const before = objects.get(key)
    if (objects.delete(key)) onChange(key, before, undefined)
  }
  const replaceAll = (items: readonly KubeObject[]): void => {
    const gone = new Set(objects.keys())
    for (const item of items) {
      gone.delete(keyOf(item))
      keep(item)
    }
    for (const key of gone) forget(key)
  }

  /** Applies an event. */
  const take = (kind: WatchEvent['type'], object: KubeObject): void => {
    const { resourceVersion } = object.metadata
    if (isLater(resourceVersion, seen)) seen = resourceVersion
    if (kind === 'BOOKMARK') return
    const key = keyOf(object)
    // A learned object is newer; its own event follows.
    if (isLater(objects.get(key)?.metadata.resourceVersion, resourceVersion)) return
    if (kind === 'DELETED') forget(key)
    else keep(object)
  }

  /** Version to continue from; undefined requires a list. Advances with each event. */
  let version: string | undefined
  /** When the server accepted the current or last watch; undefined if none. */
  let openedMs: number | undefined
  const isSteady = (): boolean => openedMs !== undefined && timers.now() - openedMs >= STEADY_MS

  const readAll = async (): Promise<string> => {
    const page = await client.list(type, selection)
    seen = page.resourceVersion
    if (!stop.signal.aborted) takeAll(page.items)
    return page.resourceVersion
  }
  const takeAll = (items: readonly KubeObject[]): void => {
    replaceAll(items)
    problem = undefined
    isSynced = true
    markSynced()
  }

  /** Watches from a version until the server ends the watch. */
  const follow = async (from: string): Promise<void> => {
    const events = client.watch(type, selection, {
      resourceVersion: from,
      seconds: Math.round(WATCH_SECONDS * (1 + random())),
      silenceMs,
      signal: stop.signal,
      // Without changes, the first event may take a minute.
      onOpen: () => {
        openedMs = timers.now()
        problem = undefined
      },
    })
    for await (const { type: kind, object } of events) {
      take(kind, object)
      version = object.metadata.resourceVersion ?? version
    }
  }

  const run = async (): Promise<void> => {
    while (!stop.signal.aborted) {
      openedMs = undefined
      try {
        version ??= await readAll()
        if (stop.signal.aborted) return
        await follow(version)
        // A regular end. One that repeats at once must not become a busy loop.
        if (isSteady()) failures = 0
        else await wait()
      } catch (error) {
        if (stop.signal.aborted) return
        if (isSteady()) failures = 0
        if (isExpired(error)) await readAnew(error)
        else if (options.mayBeMissing === true && isNotFound(error)) await waitForKind()
        else await tryAgain(error)
      }
    }
  }

  const readAnew = async (error: unknown): Promise<void> => {
    version = undefined
    options.onRestart?.('expired')
    log.debug({ kind: type.kind }, 'watch expired, listing again')
    // Normal once in a while; after another failure, the data become stale.
    if (failures++ === 0) return
    problem = describe(error)
    await wait()
  }

  const waitForKind = (): Promise<void> => {
    version = undefined
    takeAll([])
    return pause(timers, MOST_PAUSE_MS, stop.signal)
  }

  const tryAgain = async (error: unknown): Promise<void> => {
    const { status, reason, retryAfterSeconds } = error instanceof KubeError ? error : NO_ANSWER
    const isRefused = status >= 400 && status < 500 && status !== 429
    options.onRestart?.(isRefused ? 'refused' : 'lost')
    problem = describe(error)
    // Rejected: the kind may not be installed or allowed yet, so the data may be stale. A malformed event must not
    // repeat forever.
    if (isRefused || isTooNew(error) || reason === 'malformed') version = undefined
    if (failures === 0) log.warn({ kind: type.kind, problem, cause: causeOf(error) }, 'watch lost, retrying')
    await wait(retryAfterSeconds)
  }

  const wait = (retryAfterSeconds = 0): Promise<void> => {
    failures++
    const ms = backoffMs(failures, { firstMs: FIRST_PAUSE_MS, mostMs: MOST_PAUSE_MS, random })
    // Jitter, so that clients do not all return at once.
    const askedMs = retryAfterSeconds * 1000 * (1 + random() / 10)
    return pause(timers, Math.max(ms, askedMs), stop.signal)
  }

  void run()
  return {
    type,
    get: (key) => objects.get(key),
    list: () => [...objects.values()],
    learn(object) {
      const { resourceVersion, deletionTimestamp } = object.metadata
      if (deletionTimestamp === undefined && isLater(resourceVersion, seen)) keep(object)
    },
    get isSynced() {
      return isSynced
    },
    synced,
    get problem() {
      return problem
    },
    close: () => stop.abort(),
  }
}

const NO_ANSWER = { status: 0, reason: '', retryAfterSeconds: undefined }

function describe(error: unknown): string {
  if (!(error instanceof KubeError)) return 'internal'
  return error.status === 0
    ? `no response (${error.reason === '' ? 'connection lost' : error.reason})`
    : `${error.status} ${error.reason}`
}
