import type { MovedClock, Part } from '../oracle/excuses.ts'
import type { Random } from '../random.ts'
import type { World } from '../world/world.ts'

/** Something that goes wrong for a while. */
export interface Fault {
  readonly name: string
  /** Parts that fail meanwhile. */
  readonly parts: readonly Part[]
  /** The clock that is off meanwhile. */
  readonly clock?: MovedClock
  /** How long, in milliseconds, at least and at most. */
  readonly lastsMs: readonly [least: number, most: number]
  /** Begins it; what it gives puts everything right again. */
  begin(world: World, random: Random): Promise<() => Promise<void> | void>
}
