import { readdirSync } from 'node:fs'
import { memoryOf } from '../../bench/processes.ts'
import type { World } from '../world/world.ts'

/** A bounded measure: name, unit, and permitted growth in the evaluated part of a run. */
export const MEASURES = [
  { name: 'memory', unit: 'MiB', of: 'replica', mayGrow: { part: 0.25, by: 24 } },
  { name: 'live', unit: 'MiB', of: 'replica', mayGrow: { part: 0.1, by: 8 } },
  { name: 'heap', unit: 'MiB', of: 'replica', mayGrow: { part: 0.25, by: 16 } },
  { name: 'heap committed', unit: 'MiB', of: 'replica', mayGrow: undefined },
  { name: 'external', unit: 'MiB', of: 'replica', mayGrow: undefined },
  { name: 'descriptors', unit: '', of: 'replica', mayGrow: { part: 0.1, by: 40 } },
  { name: 'handles', unit: '', of: 'replica', mayGrow: { part: 0.1, by: 40 } },
  { name: 'series', unit: '', of: 'replica', mayGrow: { part: 0.05, by: 60 } },
  { name: 'keys', unit: '', of: 'store', mayGrow: undefined },
] as const
export type MeasureName = (typeof MEASURES)[number]['name']

/** A sample of a process, or of the store. */
export interface Sample {
  /** Since the start of the run. */
  readonly atSeconds: number
  /** The replica, with the number of its start; `Redis` for the store. */
  readonly of: string
  readonly values: Readonly<Partial<Record<MeasureName, number>>>
}

const MIB = 1024 * 1024
const PATIENCE_MS = 5_000

/** Looks at all of them; who does not answer, because a fault is on, is left out. */
export async function takeSamples(world: World, atSeconds: number): Promise<readonly Sample[]> {
  const samples: Sample[] = []
  for (const replica of [...world.replicas, world.registry]) {
    const text = await fetch(`${replica.adminUrl}/metrics`, { signal: AbortSignal.timeout(PATIENCE_MS) }).then(
      (response) => response.text(),
      () => undefined,
    )
    if (text === undefined) continue
    const own = memoryAndDescriptorsOf(replica.pid)
    if (own === undefined) continue
    samples.push({
      atSeconds,
      of: `${replica.name}.${replica.starts}`,
      values: {
        ...own,
        ...(replica.liveBytes === undefined ? {} : { live: replica.liveBytes / MIB }),
        heap: valueOf(text, 'nodejs_heap_size_used_bytes') / MIB,
        'heap committed': valueOf(text, 'nodejs_heap_size_total_bytes') / MIB,
        external: valueOf(text, 'nodejs_external_memory_bytes') / MIB,
        handles: valueOf(text, 'nodejs_active_handles_total'),
        series: text.split('\n').filter((line) => line !== '' && !line.startsWith('#')).length,
      },
    })
  }
  const keys = await world.store.keys()
  if (keys !== undefined && Number.isFinite(keys)) samples.push({ atSeconds, of: 'Redis', values: { keys } })
  return samples
}

/** In MiB, and their number; undefined for a process that has ended. */
export function memoryAndDescriptorsOf(pid: number): { memory: number; descriptors: number } | undefined {
  try {
    return { memory: memoryOf(pid) / MIB, descriptors: readdirSync(`/proc/${pid}/fd`).length }
  } catch {
    return undefined
  }
}

const valueOf = (metrics: string, name: string): number =>
  Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(metrics)?.[1] ?? Number.NaN)
