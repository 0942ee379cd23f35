import { once } from 'node:events'
import type { Worker } from 'node:worker_threads'
import { type Clock, Failure, startThread, SYSTEM_CLOCK } from '../../core/index.ts'
import { bytesOf, ConfigPlaces, type PlaceTable, type ResolvedProxy } from '../../load/index.ts'
import { ConfigError } from '../config-error.ts'
import type { ConfigAnswer, ConfigOrder, ConfigSlice } from './config-thread.ts'
import { loadProxyConfig, type ProxySources, watchedPaths } from '../load-config.ts'

/** Configurations up to this size are read in the main thread within some tens of milliseconds. */
const SMALL_BYTES = 64 * 1024

const SOURCES: Readonly<Record<keyof ProxySources, true>> = {
  configPaths: true,
  stdin: true,
  listen: true,
  admin: true,
  secretsDirectory: true,
  target: true,
  externalAuth: true,
  callers: true,
  ignoreManifestCallers: true,
  inspector: true,
  namespace: true,
  onlyRoute: true,
  apiGroup: true,
}

/**
 * Like `loadProxyConfig` without blocking requests: a separate thread reads large configurations,
 * and its heap is freed with it. Throws what `loadProxyConfig` throws.
 */
export async function readProxyConfig(
  sources: ProxySources,
  { clock = SYSTEM_CLOCK }: { readonly clock?: Clock } = {},
): Promise<ResolvedProxy> {
  const paths = watchedPaths(sources).map(({ path }) => path)
  if ((await bytesOf(paths)) + (sources.stdin?.length ?? 0) <= SMALL_BYTES) return loadProxyConfig(sources, { clock })
  const own = Object.fromEntries(Object.entries(sources).filter(([name]) => name in SOURCES)) as unknown as ProxySources
  const order: ConfigOrder = { sources: own, nowMs: clock.now() }
  const worker = startThread('compose/proxy/config-thread', { workerData: order })
  try {
    const head = await answerOf(worker)
    if (head.is !== 'head') throw refusedBy(head)
    const lists = { routes: [], files: [], secrets: [], places: [] }
    for (;;) {
      worker.postMessage('next', [])
      const answer = await answerOf(worker)
      if (answer.is !== 'slice') break
      append(lists, answer.slice)
    }
    const { routes, files, secrets, places } = lists
    const table: PlaceTable = { ...head.places, files, secrets, routes: new Map(places) }
    return { ...head.config, routes, places: new ConfigPlaces(table) }
  } finally {
    await worker.terminate()
  }
}

function append(lists: Readonly<Record<ConfigSlice['of'], unknown[]>>, { of, items }: ConfigSlice): void {
  for (const item of items) lists[of].push(item)
}

async function answerOf(worker: Worker): Promise<ConfigAnswer> {
  // Rejects when the thread terminates, for example out of memory.
  const [answer] = (await once(worker, 'message')) as [ConfigAnswer]
  return answer
}

function refusedBy(answer: ConfigAnswer): Error {
  if (answer.is === 'refused')
    return new ConfigError(answer.lines, { problems: answer.problems, isAboutFiles: answer.isAboutFiles })
  return new Failure('internal_error', {
    detail: answer.is === 'failed' ? answer.detail : 'the configuration thread ended without a result',
  })
}
