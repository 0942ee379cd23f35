import { getHeapSpaceStatistics, getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

const MIB = 1024 * 1024
const LOOK_MS = 5_000
/** CPU within a look, in milliseconds, of a process at rest: health checks and the like. */
const REST_MS = 100
/** After so many looks at rest, what work left behind is collected. */
const LOOKS_OF_REST = 3
/** What the heap must have grown since the last time: less is not worth it. */
const GROWN_BYTES = 6 * MIB
/** A collection takes about a millisecond for each MiB that lives; a larger heap is left to V8, so that nobody who comes waits for it. */
const MOST_BYTES = 96 * MIB

/** What is looked at, and done. */
export interface MemoryAtRestOptions {
  /** CPU time of this process until now, in milliseconds. */
  readonly cpuMs: () => number
  /** Bytes of the heap: in use, garbage included, how many of these by young objects, and held. */
  readonly heap: () => { readonly used: number; readonly young: number; readonly held: number }
  readonly collect: () => void
}

/** Gives a look, to be made every five seconds: collects once after the heap has grown, and never while there is work. */
export function createLook({ cpuMs, heap, collect }: MemoryAtRestOptions): () => void {
  // Reading the configuration leaves more behind than anything else does in an idle process.
  let [heldBefore, quiet, cpuBefore] = [0, 0, cpuMs()]
  return () => {
    const now = cpuMs()
    quiet = now - cpuBefore < REST_MS ? quiet + 1 : 0
    cpuBefore = now
    if (quiet < LOOKS_OF_REST) return
    const { used, young, held } = heap()
    // What is young is garbage nearly all of it, and of that there may be 64 MiB.
    if (held < heldBefore + GROWN_BYTES || used - young > MOST_BYTES) return
    collect()
    heldBefore = heap().held
    // What the collection took is nobody's work.
    cpuBefore = cpuMs()
  }
}

/**
 * Gives the memory back that work needed, when there is none any more (docs/adr/0306). V8 collects when something is
 * allocated: without requests what the last of them left behind stays, and the room for young objects stays as large as it was.
 * Called by whoever has started to serve; what loading the program left is the first to go.
 */
export function returnMemoryAtRest(): void {
  const look = createLook({
    cpuMs() {
      const { user, system } = process.cpuUsage()
      return (user + system) / 1000
    },
    heap() {
      const { used_heap_size: used, total_heap_size: held } = getHeapStatistics()
      const space = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')
      return { used, young: space?.space_used_size ?? 0, held }
    },
    collect: () => collector()(),
  })
  setInterval(look, LOOK_MS).unref()
}

/** V8 hands its `gc` to contexts that are made while the flag is there. */
function collector(): () => void {
  setFlagsFromString('--expose-gc')
  try {
    return runInNewContext('gc') as () => void
  } finally {
    setFlagsFromString('--no-expose-gc')
  }
}
