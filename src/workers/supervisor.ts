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
import { type Crew, startCrew, WorkerNotStarted } from './crew.ts'
import { forkWorker } from './fork.ts'
import { createMemoryOfWorkers } from './memory-of-workers.ts'
import { mergeDecisions, mergeListings, mergePurges, mergeReadiness, mergeReloads } from './merge.ts'
import type { StartFailure, WorkerMethods } from './messages.ts'
import { NoAnswer } from './peer.ts'
import { openReception } from './reception.ts'

/** So long a worker may take to answer for itself; scrapers wait about ten seconds. */
const ANSWER_MS = 3_000
/** A reload reads files and may ask for keys. */
const RELOAD_MS = 30_000
/** What a worker gets beyond its drain to let go of everything. */
const LAST_MS = 5_000

/**
 * Runs the proxy as `workers` processes on one port, and one admin listener that speaks for all. Throws what one process
 * alone would; nothing is left running then.
 */
export async function runWorkers(
  options: ProxyProcessOptions & { readonly log: OpenLog; readonly workers: number; readonly isTerminal: boolean },
): Promise<RunningProxy> {
  await using opening = new AsyncDisposableStack()
  const { log, env, workers, isTerminal, clock = Date, drainGraceMs = DEFAULT_DRAIN_GRACE_MS } = options
  const first = await readProxyConfig(options)
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
  const reception = await placedListener(first.places, 'listen', () =>
    openReception(parseListenAddress(first.listen.address), { scheme, log }),
  )
  opening.defer(() => reception.close())
  const { url } = reception
  const common = {
    url,
    sessionKey: randomBytes(32).toString('base64url'),
    ticketKeys: randomBytes(48),
    settings: fixedSettings(first),
    stdin: options.stdin,
  }
  const crew = await startCrew({
    count: workers,
    fork: () => forkWorker({ memory, common, reception, ephemeralKeys, log, isTerminal, env }),
    log,
    metrics,
    onEnded: (worker) => merged.depart(worker),
  }).catch((error: unknown) => {
    throw error instanceof WorkerNotStarted ? asItWas(error.failure) : error
  })
  let isDraining = false
  const drain = (): Promise<void> => {
    isDraining = true
    reception.close()
    return crew.stop(drainGraceMs + LAST_MS)
  }
  opening.defer(drain)

  const controls: ProxyControls = {
    async config() {
      const [answer] = (await ask(crew, 'config', [])).answers
      if (answer === undefined) throw new Failure('internal_error', { detail: 'no worker answers' })
      return answer
    },
    readiness: async () =>
      isDraining
        ? { ok: false, detail: { draining: true } }
        : mergeReadiness((await ask(crew, 'readiness', [])).answers, workers),
    async metrics() {
      const inUse: NamesInUse[] = []
      await each(crew, async (worker) => {
        const { snapshot, names } = await worker.peer.ask('metrics', [], ANSWER_MS)
        merged.take(worker, snapshot)
        inUse.push(names)
      })
      return merged.render(await metrics.snapshot(), inUse)
    },
    cache: async () => mergeListings(await every(crew, 'cache', [])),
    purge: async (filter) => mergePurges(await every(crew, 'purge', [filter])),
    decisions: async () => mergeDecisions(await every(crew, 'decisions', [])),
    reload: async () =>
      isDraining
        ? { ok: false, problems: ['the proxy is shutting down'] }
        : mergeReloads(await every(crew, 'reload', [], RELOAD_MS)),
  }
  const admin = await startAdmin(first.admin, controls, log, opening)
  // Each worker would show its own requests only.
  if (first.admin.inspector !== 'off')
    log.warn(
      { inspector: first.admin.inspector, workers },
      'the inspector needs a single process, and is off with workers',
    )
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
  /** Process ids of those that did not answer in time. */
  readonly late: readonly (number | undefined)[]
}

/** Asks all that serve. One that ends meanwhile has nothing to say. */
async function ask<K extends keyof WorkerMethods>(
  crew: Crew,
  name: K,
  args: Parameters<WorkerMethods[K]>,
  deadlineMs = ANSWER_MS,
): Promise<Answers<Awaited<ReturnType<WorkerMethods[K]>>>> {
  const answers: Awaited<ReturnType<WorkerMethods[K]>>[] = []
  const late: (number | undefined)[] = []
  await each(crew, async (worker) => {
    try {
      answers.push(await worker.peer.ask(name, args, deadlineMs))
    } catch (error) {
      if (!(error instanceof NoAnswer) || error.reason === 'late') late.push(worker.pid)
    }
  })
  return { answers, late }
}

/** The same where half an answer would be a wrong one. Throws `internal_error`. */
async function every<K extends keyof WorkerMethods>(
  crew: Crew,
  name: K,
  args: Parameters<WorkerMethods[K]>,
  deadlineMs?: number,
): Promise<Awaited<ReturnType<WorkerMethods[K]>>[]> {
  const { answers, late } = await ask(crew, name, args, deadlineMs)
  if (late.length === 0) return answers
  throw new Failure('internal_error', { detail: `worker ${late.join(', ')} did not answer for ${name} in time` })
}

/** What fails for one worker keeps nobody else's answer away. */
const each = async (crew: Crew, ask: (worker: WorkerProcess) => Promise<void>): Promise<void> =>
  void (await Promise.allSettled(crew.serving.map(ask)))

/** The same error that the worker had, so that the command says the same. */
function asItWas({ lines, code, detail, systemCode }: StartFailure): Error {
  if (lines !== undefined) return new ConfigError(lines)
  return new Failure((code ?? 'internal_error') as FailureCode, {
    ...(detail === undefined ? {} : { detail }),
    cause: { code: systemCode },
  })
}
