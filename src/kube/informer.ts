import type { WatchEvent } from './answers.ts'
import { causeOf, type Log } from '../core/index.ts'
import { backoffMs } from './backoff.ts'
import type { KubeClient, Selection } from './client.ts'
import { isExpired, isNotFound, isTooNew, KubeError } from './kube-error.ts'
import { isLater, keyOf, type KubeObject, type ResourceType } from './object.ts'
import { pause, systemTimers, type Timers } from './timers.ts'

/** Why a watch had to be made anew. */
export const RESTART_REASONS = ['expired', 'lost', 'refused'] as const
export type RestartReason = (typeof RESTART_REASONS)[number]

export interface InformerOptions {
  readonly client: KubeClient
  readonly type: ResourceType
  readonly selection?: Selection
  /** Cuts an object down to what is needed before it is kept in place of `before`. */
  readonly trim?: (object: KubeObject, before: KubeObject | undefined) => KubeObject
  /** An object came, changed or went (`after` undefined). Called for each object of a new list that differs from before. */
  readonly onChange: (key: string, before: KubeObject | undefined, after: KubeObject | undefined) => void
  readonly log: Log
  /** A kind that the server does not know is an empty collection, and is asked for again at times. Default false. */
  readonly mayBeMissing?: boolean
  /** 0 ≤ n < 1. Default Math.random. */
  readonly random?: () => number
  readonly timers?: Timers
  /** Longest silence of a watch in milliseconds; the server sends a bookmark once a minute. Default 100,000. */
  readonly silenceMs?: number
  /** Told whenever a watch has to be made anew for another reason than its regular end. */
  readonly onRestart?: (reason: RestartReason) => void
}

/** A local copy of a collection that follows the API server whatever happens to connections and servers. */
export interface Informer {
  readonly type: ResourceType
  get(key: string): KubeObject | undefined
  list(): readonly KubeObject[]
  /**
   * Takes what a write of ours answered, ahead of its event, so that nothing is decided from what was there before. What the
   * watch has told already, or is told to be on its way out, is not taken.
   */
  learn(object: KubeObject): void
  /** True once the whole collection was read. */
  readonly isSynced: boolean
  /** Resolves at the first complete list. */
  readonly synced: Promise<void>
  /** Why the last list or watch failed; undefined while all is well. For readiness. */
  readonly problem: string | undefined
  close(): void
}

const FIRST_PAUSE_MS = 200
const MOST_PAUSE_MS = 30_000
const DEFAULT_SILENCE_MS = 100_000
/** A watch that has lasted for so long shows that the server works: the next failure is the first one again. */
const STEADY_MS = 5_000
/** A watch ends by itself after 5 to 10 minutes, so that many of them are not renewed at once. */
const WATCH_SECONDS = 300

/** Lists, watches, and begins anew after every kind of end: cut, silent, refused, expired (410), half a line. */
export function createInformer(options: InformerOptions): Informer {
  const { client, type, selection = {}, trim = (object) => object, onChange, log } = options
  const { random = Math.random, timers = systemTimers, silenceMs = DEFAULT_SILENCE_MS } = options
  const objects = new Map<string, KubeObject>()
  const stop = new AbortController()
  const { promise: synced, resolve: markSynced } = Promise.withResolvers<void>()
  let isSynced = false
  let problem: string | undefined
  let failures = 0
  /** How far list and watch have come; what was learned may be ahead of it. */
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

  /** Takes what an event tells. */
  const take = (kind: WatchEvent['type'], object: KubeObject): void => {
    const { resourceVersion } = object.metadata
    if (isLater(resourceVersion, seen)) seen = resourceVersion
    if (kind === 'BOOKMARK') return
    const key = keyOf(object)
    // What was learned from a write is newer than this; its own event will come.
    if (isLater(objects.get(key)?.metadata.resourceVersion, resourceVersion)) return
    if (kind === 'DELETED') forget(key)
    else keep(object)
  }

  /** Where to go on from; undefined when everything has to be read first. Moves with each event, however the watch ends. */
  let version: string | undefined
  /** When the server took the watch that runs or was the last to run; undefined when it took none. */
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

  /** Follows from a version until the server ends the watch. */
  const follow = async (from: string): Promise<void> => {
    const events = client.watch(type, selection, {
      resourceVersion: from,
      seconds: Math.round(WATCH_SECONDS * (1 + random())),
      silenceMs,
      signal: stop.signal,
      // Where nothing happens, the first event may be a minute away.
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
        // Ended as agreed; one that ends at once, again and again, must not become a busy loop.
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
    // Once in a while this is how things are; when it follows another failure, what we know gets old.
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
    // Refused may mean that the kind is not installed or not allowed yet; what we know may be old by then. What could not be
    // read must not come again and again.
    if (isRefused || isTooNew(error) || reason === 'malformed') version = undefined
    if (failures === 0) log.warn({ kind: type.kind, problem, cause: causeOf(error) }, 'watch lost, trying again')
    await wait(retryAfterSeconds)
  }

  const wait = (retryAfterSeconds = 0): Promise<void> => {
    failures++
    const ms = backoffMs(failures, { firstMs: FIRST_PAUSE_MS, mostMs: MOST_PAUSE_MS, random })
    // Not all of those who were asked to come back later come back at the same moment.
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
    ? `no answer (${error.reason === '' ? 'connection lost' : error.reason})`
    : `${error.status} ${error.reason}`
}
