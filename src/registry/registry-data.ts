import { causeOf, type Clock, type EpochMs, type Log, type Metrics } from '../core/index.ts'
import type { Snapshot } from './listing/snapshot.ts'
import { SourceError, type SourceProblem } from './source-error.ts'

/** Reads all data of a source; `unchanged` if equal to the last time. Throws `SourceError`. */
export type ReadAll = () => Promise<Snapshot | 'unchanged'>

export interface RegistryState {
  /** The last valid data; undefined if there have never been any. */
  readonly snapshot: Snapshot | undefined
  /** Why the served data are not the newest. */
  readonly problem: SourceProblem | undefined
  /** When the served data were loaded,. */
  readonly loadedAtMs: EpochMs | undefined
  /** Retry-After of the source at the last refresh, in seconds. */
  readonly retryAfterSeconds?: number | undefined
}

/** The data of one registry, kept up to date. */
export interface RegistryData {
  readonly name: string
  state(): RegistryState
  /** Reads the source; never throws. Calls during a refresh cause one more. */
  refresh(): Promise<void>
  /** A refresh in flight has no effect afterwards, in particular on the series of a removed registry. */
  close(): void
}

export interface RegistryDataOptions {
  readonly name: string
  readonly readAll: ReadAll
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
}

/**
 * Keeps the last valid snapshot of a source, replaced as a whole by the next valid one (decisions §7, Registry file).
 */
export function createRegistryData(options: RegistryDataOptions): RegistryData {
  const { name, log, clock } = options
  const entries = options.metrics.gauge('extauth_registry_entries', 'Entries served.', ['registry']).with(name)
  const skipped = options.metrics
    .gauge('extauth_registry_entries_skipped', 'Entries left out because they are not valid.', ['registry'])
    .with(name)
  const loads = options.metrics.counter('extauth_registry_loads_total', 'Loads of registry data.', [
    'registry',
    'outcome',
  ])
  let state: RegistryState = { snapshot: undefined, problem: undefined, loadedAtMs: undefined }
  let running: Promise<void> | undefined
  let isAskedAgain = false
  let isClosed = false

  const load = async (): Promise<void> => {
    try {
      const snapshot = await options.readAll()
      if (isClosed) return
      if (snapshot === 'unchanged') {
        state = { ...state, problem: undefined, retryAfterSeconds: undefined }
        loads.with(name, 'unchanged').add()
        return
      }
      state = { snapshot, problem: undefined, loadedAtMs: clock.now() }
      entries.set(snapshot.entries.length)
      skipped.set(snapshot.skipped.count)
      loads.with(name, 'replaced').add()
      log.info({ registry: name, entries: snapshot.entries.length }, 'registry data loaded')
      const { count, amended, first } = snapshot.skipped
      if (count > 0) log.warn({ registry: name, skipped: count, first }, 'invalid registry entries skipped')
      if (amended > 0)
        log.warn({ registry: name, amended, first }, 'invalid optional fields removed from registry entries')
    } catch (error) {
      if (isClosed) return
      const known =
        error instanceof SourceError ? error : new SourceError('failed', 'the snapshot could not be built', error)
      const isNew = state.problem !== known.problem
      state = { ...state, problem: known.problem, retryAfterSeconds: known.retryAfterSeconds }
      loads.with(name, known.problem).add()
      const fields = { registry: name, problem: known.problem, detail: known.detail, cause: causeOf(known.cause) }
      const consequence = state.snapshot === undefined ? 'no data' : 'keeping the former data'
      log[isNew ? 'warn' : 'debug'](fields, `registry data not loaded, ${consequence}`)
    }
  }

  const run = async (): Promise<void> => {
    do {
      isAskedAgain = false
      await load()
    } while (isAskedAgain)
    running = undefined
  }

  return {
    name,
    state: () => state,
    refresh: () => {
      if (isClosed) return Promise.resolve()
      if (running === undefined) running = run()
      else isAskedAgain = true
      return running
    },
    close() {
      isClosed = true
      isAskedAgain = false
    },
  }
}
