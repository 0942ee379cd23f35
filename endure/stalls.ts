import type { FaultLog, Part } from './oracle/excuses.ts'

/** Name of the spans in which this process, with all stand-ins and callers in it, did nothing. */
export const STALL = 'the harness stood still'

/** What is in this process, or behind a gate of it. */
const PARTS: readonly Part[] = ['provider', 'introspection', 'sts', 'workspace', 'backend', 'store', 'own server']
const TICK_MS = 100
/** Shorter ones are within what every deadline leaves. */
const LEAST_MS = 400

/** Notes when the machine gave this process no time: what is late then is nobody's fault but its own. */
export function watchOwnStalls(log: FaultLog): { stop(): void; totalMs(): number } {
  let last = performance.now()
  let total = 0
  const ticking = setInterval(() => {
    const now = performance.now()
    const late = now - last - TICK_MS
    if (late > LEAST_MS) {
      total += late
      log.add({ name: STALL, parts: PARTS, from: last, until: now })
    }
    last = now
  }, TICK_MS)
  return { stop: () => clearInterval(ticking), totalMs: () => total }
}
