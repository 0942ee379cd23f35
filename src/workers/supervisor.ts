import { randomBytes } from 'node:crypto'
import type { WorkerProcess } from './worker-process.ts'
import { type EphemeralMaterial, makeEphemeralMaterial } from '../signing/index.ts'
import { Failure, type FailureCode } from '../core/index.ts'
import { parseListenAddress } from '../listen/index.ts'
import { ConfigError, memorySharesOf, placedListener, type ProxyControls, VERSION } from '../compose/index.ts'
import { countLostLines, createMergedMetrics, type NamesInUse, type OpenLog, openMetrics } from '../report/index.ts'
import {
  DEFAULT_DRAIN_GRACE_MS,
  fixedSettings,
  type ProxyProcessOptions,
  readProxyConfig,
  type RunningProxy,
  startAdmin,
} from '../compose/proxy/index.ts'
import { type WorkerPool, startPool, WorkerNotStarted } from './worker-pool.ts'
import { forkWorker } from './fork.ts'
import { createMemoryOfWorkers } from './memory-of-workers.ts'
import { mergeDecisions, mergeListings, mergePurges, mergeReadiness, mergeReloads } from './merge.ts'
import type { StartFailure, WorkerMethods } from './messages.ts'
import { NoAnswer } from './peer.ts'
import { openDispatcher } from './connection-dispatcher.ts'

/** Timeout for requests to a worker; scrapers wait about ten seconds. */
const ANSWER_MS = 3_000
/** A reload reads files and may fetch keys. */
const RELOAD_MS = 30_000
/** Time for a worker to exit after its drain. */
const LAST_MS = 5_000

/**
 * Runs the proxy as `workers` processes on one port, with one admin listener for all. Throws the errors of a single
 * process, after stopping all.
 */
export async function runWorkers(
  options: ProxyProcessOptions & { readonly log: OpenLog; readonly workers: number; readonly isTerminal: boolean },
): Promise<RunningProxy> {
  await using opening = new AsyncDisposableStack()
  const { log, env, workers, isTerminal, clock = Date, drainGraceMs = DEFAULT_DRAIN_GRACE_MS } = options
  const first = await readProxyConfig(options)
  if (first.connections?.spec.storage?.type === 'file')
    throw new ConfigError([
      `spec.connections.storage: type "file" is for one process, and --workers is ${workers}; expected type "kvstore", or no --workers`,
    ])
  const metrics = openMetrics()
  countLostLines(log, metrics)
  const merged = createMergedMetrics()
  const memory = createMemoryOfWorkers({ clock, log })
  const keys = new Map<string, EphemeralMaterial>()
  const ephemeralKeys = (server: string) => {
    const material = keys.get(server) ?? makeEphemeralMaterial()
    keys.set(server, material)
    return { signing: material.signing.reveal(), sealing: material.sealing.reveal() }
  }
  const scheme = first.listen.tls === undefined ? 'http' : 'https'
  const dispatcher = await placedListener(first.places, 'listen', () =>
    openDispatcher(parseListenAddress(first.listen.address), { scheme, log }),
  )
  opening.defer(() => dispatcher.close())
  const { url } = dispatcher
  const common = {
    url,
    sessionKey: randomBytes(32).toString('base64url'),
    ticketKeys: randomBytes(48),
    settings: fixedSettings(first),
    stdin: options.stdin,
  }
  const pool = await startPool({
    count: workers,
    fork: () => forkWorker({ memory, common, dispatcher, ephemeralKeys, log, isTerminal, env }),
    log,
    metrics,
    onEnded: (worker) => merged.depart(worker),
  }).catch((error: unknown) => {
    throw error instanceof WorkerNotStarted ? errorOf(error.failure) : error
  })
  let isDraining = false
  const drain = (): Promise<void> => {
    isDraining = true
    dispatcher.close()
    return pool.stop(drainGraceMs + LAST_MS)
  }
  opening.defer(drain)

  const controls: ProxyControls = {
    config: async () => oneOf((await ask(pool, 'config', [])).answers),
    readiness: async () =>
      isDraining
        ? { ok: false, detail: { draining: true } }
        : mergeReadiness((await ask(pool, 'readiness', [])).answers, workers),
    async metrics() {
      const inUse: NamesInUse[] = []
      await each(pool, async (worker) => {
        const { snapshot, names } = await worker.peer.ask('metrics', [], ANSWER_MS)
        merged.take(worker, snapshot)
        inUse.push(names)
      })
      return merged.render(await metrics.snapshot(), inUse)
    },
    cache: async () => mergeListings(await every(pool, 'cache', [])),
    purge: async (filter) => mergePurges(await every(pool, 'purge', [filter])),
    // The first worker that finds a connection ends it for all.
    disconnect: async (filter) => (await every(pool, 'disconnect', [filter])).reduce((sum, ended) => sum + ended, 0),
    // All workers have the same store.
    connections: async (filter) => oneOf(await every(pool, 'connections', [filter])),
    decisions: async () => mergeDecisions(await every(pool, 'decisions', [])),
    reload: async () =>
      isDraining
        ? { ok: false, problems: ['the proxy is shutting down'] }
        : mergeReloads(await every(pool, 'reload', [], RELOAD_MS)),
  }
  const admin = await startAdmin(first.admin, controls, log, opening)
  // A worker sees only its own requests.
  if (first.admin.inspector !== 'off')
    log.warn({ inspector: first.admin.inspector, workers }, 'inspector is off: it requires a single process')
  const shares = memorySharesOf(options, first.listen.bufferedBodiesBytes)
  log.info({ url, admin: admin.url, routes: first.routes.length, workers, ...shares, version: VERSION }, 'listening')
  const opened = opening.move()
  const close = async (): Promise<void> => {
    try {
      await opened.disposeAsync()
    } finally {
      await admin.close()
    }
  }
  return {
    url,
    adminUrl: admin.url,
    inspectUrl: undefined,
    routes: first.routes,
    reload: () => controls.reload(),
    close,
  }
}

interface Answers<T> {
  readonly answers: T[]
  /** Process IDs of workers that timed out. */
  readonly late: readonly (number | undefined)[]
}

/** Calls a method of all serving workers. Skips workers that exit meanwhile. */
async function ask<K extends keyof WorkerMethods>(
  pool: WorkerPool,
  name: K,
  args: Parameters<WorkerMethods[K]>,
  deadlineMs = ANSWER_MS,
): Promise<Answers<Awaited<ReturnType<WorkerMethods[K]>>>> {
  const answers: Awaited<ReturnType<WorkerMethods[K]>>[] = []
  const late: (number | undefined)[] = []
  await each(pool, async (worker) => {
    try {
      answers.push(await worker.peer.ask(name, args, deadlineMs))
    } catch (error) {
      if (!(error instanceof NoAnswer) || error.reason === 'late') late.push(worker.pid)
    }
  })
  return { answers, late }
}

/** Like `ask`, if a partial result would be wrong. Throws `internal_error`. */
async function every<K extends keyof WorkerMethods>(
  pool: WorkerPool,
  name: K,
  args: Parameters<WorkerMethods[K]>,
  deadlineMs?: number,
): Promise<Awaited<ReturnType<WorkerMethods[K]>>[]> {
  const { answers, late } = await ask(pool, name, args, deadlineMs)
  if (late.length === 0) return answers
  throw new Failure('internal_error', { detail: `worker ${late.join(', ')} did not respond to ${name} in time` })
}

/** The answer of any worker. */
function oneOf<T>([answer]: readonly T[]): T {
  if (answer === undefined) throw new Failure('internal_error', { detail: 'no worker responds' })
  return answer
}

/** An error of one worker does not affect the others. */
const each = async (pool: WorkerPool, ask: (worker: WorkerProcess) => Promise<void>): Promise<void> =>
  void (await Promise.allSettled(pool.serving.map(ask)))

/** Recreates the worker's error, so that the command prints the same. */
function errorOf({ lines, code, detail, systemCode }: StartFailure): Error {
  if (lines !== undefined) return new ConfigError(lines)
  return new Failure((code ?? 'internal_error') as FailureCode, {
    ...(detail === undefined ? {} : { detail }),
    cause: { code: systemCode },
  })
}
