import { parentPort, workerData } from 'node:worker_threads'
import { asFailure, type EpochMs } from '../../core/index.ts'
import type { ConfigPlaces, PlaceTable, Problem, ResolvedProxy } from '../../load/index.ts'
import { ConfigError } from '../config-error.ts'
import { loadProxyConfig, type ProxySources } from '../load-config.ts'

/** Input of the thread. */
export interface ConfigOrder {
  readonly sources: ProxySources
  readonly nowMs: EpochMs
}

/** Lists that grow with the number of routes; the thread sends them in slices. */
const LISTS = ['routes', 'files', 'secrets', 'places'] as const
interface Lists {
  readonly routes: ResolvedProxy['routes']
  readonly files: PlaceTable['files']
  readonly secrets: PlaceTable['secrets']
  readonly places: readonly (readonly [route: string, place: Problem])[]
}
export type ConfigSlice = { [L in keyof Lists]: { readonly of: L; readonly items: Lists[L] } }[keyof Lists]

/** Messages of the thread: one after the start, then one per request of the main thread. */
export type ConfigAnswer =
  | {
      readonly is: 'refused'
      readonly lines: readonly string[]
      readonly problems: readonly Problem[]
      readonly isAboutFiles: boolean
    }
  | { readonly is: 'failed'; readonly detail: string }
  | {
      readonly is: 'head'
      readonly config: Omit<ResolvedProxy, 'routes' | 'places'>
      readonly places: Pick<PlaceTable, 'servers' | 'process' | 'named'>
    }
  | { readonly is: 'slice'; readonly slice: ConfigSlice }
  | { readonly is: 'end' }

/** Items per slice; receiving one takes a millisecond or two. */
const SLICE = 500

function* slicesOf(routes: ResolvedProxy['routes'], { table }: ConfigPlaces): Generator<ConfigSlice> {
  const lists: Lists = { routes, files: table.files, secrets: table.secrets, places: [...table.routes] }
  for (const of of LISTS)
    for (let from = 0; from < lists[of].length; from += SLICE)
      yield { of, items: lists[of].slice(from, from + SLICE) } as ConfigSlice
}

async function serve(port: NonNullable<typeof parentPort>, { sources, nowMs }: ConfigOrder): Promise<void> {
  const say = (answer: ConfigAnswer): void => port.postMessage(answer)
  try {
    const { routes, places, ...config } = await loadProxyConfig(sources, { clock: { now: () => nowMs } })
    const slices = slicesOf(routes, places)
    port.on('message', () => {
      const next = slices.next()
      say(next.done === true ? { is: 'end' } : { is: 'slice', slice: next.value })
    })
    const { servers, process, named } = places.table
    say({ is: 'head', config, places: { servers, process, named } })
  } catch (error) {
    if (error instanceof ConfigError) {
      const { lines, problems, isAboutFiles } = error
      say({ is: 'refused', lines, problems, isAboutFiles })
      return
    }
    const { detail, code } = asFailure(error)
    say({ is: 'failed', detail: detail ?? code })
  }
}

if (parentPort !== null) void serve(parentPort, workerData as ConfigOrder)
