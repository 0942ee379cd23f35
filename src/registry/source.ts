import type { Clock, Log, Metrics, Outbound } from '../core/index.ts'
import { watchDirectory, type WatchedDirectory, watchLargeFile } from '../files/index.ts'
import { boundsFor } from './bounds.ts'
import { readDirectorySource, readFileSource } from './file-source.ts'
import { createRegistryData, type RegistryData } from './registry-data.ts'
import { MAX_PAGE_BYTES, readUpstreamSource } from './upstream-source.ts'

/** Source of a registry's data (decisions §7, Registry file): exactly one of the three. Paths are absolute. */
export interface SourceConfig {
  readonly file?: string | undefined
  readonly directory?: string | undefined
  readonly url?: string | undefined
  /** Maximum number of entries over all files or pages. Default 50,000. */
  readonly maxEntries?: number | undefined
}

export interface SourceDeps {
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  /** Creates the client for an upstream registry; the source sets the limits. */
  readonly outbound: (options: {
    readonly name: string
    readonly deadlineMs: number
    readonly maxBytes: number
    readonly retry: boolean
  }) => Outbound
  /** Poll interval of files in milliseconds, besides events. Default 30 s. */
  readonly filePollMs?: number
  /** Poll interval of an upstream in milliseconds. Default 60 s. */
  readonly upstreamPollMs?: number
}

/** The data of one registry, kept up to date until closed. */
export interface Source extends Omit<RegistryData, 'close'> {
  close(): Promise<void>
}

const UPSTREAM_POLL_MS = 60_000
const UPSTREAM_DEADLINE_MS = 30_000
/** Retry interval without any data. */
const EMPTY_RETRY_MS = 5_000
/** A broken file is read again without an event: it may be restored unchanged. */
const BROKEN_FILE_RETRY_MS = 30_000

interface Poller {
  poll(): Promise<void>
  /** Also closes the data. */
  close(): void
}

/**
 * Reads on each `poll`, then after `waitMs()`; undefined waits for the next `poll`. Does not keep the process alive.
 */
function createPoller(data: RegistryData, waitMs: () => number | undefined): Poller {
  let timer: NodeJS.Timeout | undefined
  let isClosed = false
  const poll = async (): Promise<void> => {
    clearTimeout(timer)
    await data.refresh()
    const wait = waitMs()
    clearTimeout(timer)
    if (!isClosed && wait !== undefined) timer = setTimeout(() => void poll(), wait).unref()
  }
  return {
    poll,
    close() {
      isClosed = true
      clearTimeout(timer)
      data.close()
    },
  }
}

async function openWatched(data: RegistryData, watch: (onChange: () => void) => WatchedDirectory): Promise<Source> {
  const poller = createPoller(data, () => (data.state().problem === undefined ? undefined : BROKEN_FILE_RETRY_MS))
  // Watched before it is read, so that no change is missed.
  const watched = watch(() => void poller.poll())
  await watched.ready
  await poller.poll()
  const close = (): Promise<void> => {
    watched.close()
    poller.close()
    return Promise.resolve()
  }
  return { ...data, close }
}

async function openPolled(data: RegistryData, outbound: Outbound, pollMs: number): Promise<Source> {
  const poller = createPoller(data, () => {
    const { snapshot, retryAfterSeconds = 0 } = data.state()
    return Math.max(retryAfterSeconds * 1000, snapshot === undefined ? Math.min(EMPTY_RETRY_MS, pollMs) : pollMs)
  })
  await poller.poll()
  const close = (): Promise<void> => {
    poller.close()
    return outbound.close()
  }
  return { ...data, close }
}

/**
 * Opens a source and waits for its first refresh, which may find no valid data (see `state().problem`). Then keeps it
 * up to date: files by directory events, an upstream by polling with ETag (default every 60 s). Rejects with TypeError
 * if `config` has none of the three.
 */
export async function openSource(name: string, config: SourceConfig, deps: SourceDeps): Promise<Source> {
  const { file, directory, url } = config
  const bounds = boundsFor(config.maxEntries)
  const files = deps.filePollMs === undefined ? {} : { pollMs: deps.filePollMs }
  if (file !== undefined) {
    const data = createRegistryData({ ...deps, name, readAll: readFileSource(file, bounds) })
    return openWatched(data, (onChange) => watchLargeFile(file, { onChange, ...files }))
  }
  if (directory !== undefined) {
    const data = createRegistryData({ ...deps, name, readAll: readDirectorySource(directory, bounds) })
    return openWatched(data, (onChange) => watchDirectory(directory, { onChange, ...files }))
  }
  if (url === undefined) throw new TypeError('a source must be a file, a directory or a url')
  const outbound = deps.outbound({
    name: `registry ${name}`,
    deadlineMs: UPSTREAM_DEADLINE_MS,
    maxBytes: MAX_PAGE_BYTES,
    retry: true,
  })
  const data = createRegistryData({ ...deps, name, readAll: readUpstreamSource(url, outbound, deps.clock, bounds) })
  return openPolled(data, outbound, deps.upstreamPollMs ?? UPSTREAM_POLL_MS)
}
