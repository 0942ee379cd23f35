import type { FaultLog } from '../oracle/excuses.ts'
import type { Findings } from '../oracle/findings.ts'
import type { Random } from '../random.ts'
import type { World } from '../world/world.ts'
import type { Fault } from './fault.ts'

/** When which fault begins and for how long, in milliseconds from the start of the run. */
export interface Planned {
  readonly fault: Fault
  readonly atMs: number
  readonly lastsMs: number
}

/** No fault before all callers came once, and none for a while before the end. */
const QUIET_MS = 12_000

/** A fault every `everyMs`, all of the list in random order before any repeats. */
export function plan(
  faults: readonly Fault[],
  random: Random,
  { runMs, everyMs }: { readonly runMs: number; readonly everyMs: number },
): readonly Planned[] {
  const planned: Planned[] = []
  let left: Fault[] = []
  for (let atMs = QUIET_MS; atMs < runMs - QUIET_MS - everyMs / 2; atMs += everyMs) {
    if (left.length === 0) left = random.shuffled(faults)
    const fault = left.pop()
    if (fault === undefined) break
    const [least, most] = fault.lastsMs
    planned.push({ fault, atMs, lastsMs: Math.min(random.between(least, most), everyMs) })
  }
  return planned
}

export interface Surroundings {
  readonly world: World
  readonly log: FaultLog
  readonly findings: Findings
  readonly random: Random
  /** Waits until so many milliseconds of the run are over. */
  readonly until: (ms: number) => Promise<void>
  readonly say: (text: string) => void
}

/** Lets the faults happen; resolves when the last one has ended. */
export async function play(planned: readonly Planned[], around: Surroundings): Promise<void> {
  const { world, log, findings, random, until, say } = around
  for (const [index, { fault, atMs, lastsMs }] of planned.entries()) {
    await until(atMs)
    const span = log.begin(fault.name, fault.parts, fault.clock)
    say(`${fault.name} for ${(lastsMs / 1000).toFixed(1)} s`)
    try {
      const end = await fault.begin(world, random.of(`fault ${index}`))
      await until(atMs + lastsMs)
      await end()
    } catch (error) {
      findings.add('does not recover', `${fault.name}: ${String(error)}`)
    }
    log.end(span)
  }
}
