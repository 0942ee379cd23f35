import { causeOf, type Clock, type Log, type Metrics } from '../core/index.ts'
import type { Snapshot } from './listing/snapshot.ts'
import { SourceError, type SourceProblem } from './source-error.ts'

/** Reads everything that a source has now; `unchanged` when that is what it gave last time. Throws `SourceError`. */
export type ReadAll = () => Promise<Snapshot | 'unchanged'>

export interface RegistryState {
  /** The last good data; undefined while there has never been any. */
  readonly snapshot: Snapshot | undefined
  /** Why the newest data are not what is served. */
  readonly problem: SourceProblem | undefined
  /** When the served data were loaded, in milliseconds since the epoch. */
  readonly loadedAtMs: number | undefined
  /** Whole seconds that the source asked to be left alone for, at the last look. */
  readonly retryAfterSeconds?: number | undefined
}

/** The data of one registry, kept current. */
export interface RegistryData {
  readonly name: string
  state(): RegistryState
  /** Looks at the source; never throws. Calls during a look lead to one more look, and to no more. */
  refresh(): Promise<void>
  /** What a look finds that is under way changes nothing any more, the series of a registry that has gone least of all. */
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
 * Holds the last good snapshot of a source: replaced as a whole by the next good one, kept when the next one is broken
 * (decisions §7, Registry file).
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
      if (count > 0) log.warn({ registry: name, skipped: count, first }, 'registry entries were left out')
      if (amended > 0) log.warn({ registry: name, amended, first }, 'registry entries lost optional members')
    } catch (error) {
      if (isClosed) return
      const known =
        error instanceof SourceError ? error : new SourceError('failed', 'the data could not be built', error)
      const isNew = state.problem !== known.problem
      state = { ...state, problem: known.problem, retryAfterSeconds: known.retryAfterSeconds }
      loads.with(name, known.problem).add()
      const fields = { registry: name, problem: known.problem, detail: known.detail, cause: causeOf(known.cause) }
      const consequence = state.snapshot === undefined ? 'there are no data' : 'the data from before stay'
      log[isNew ? 'warn' : 'debug'](fields, `registry data could not be loaded: ${consequence}`)
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
