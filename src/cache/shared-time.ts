import { monotonicNow } from '../core/index.ts'
const TICK_MS = 10

/** Measures time, without blocked event loop. */
export interface Stopwatch {
  readonly spentMs: number
  stop(): void
}

export interface ResponsiveTime {
  /** Starts a stopwatch; `onTick` is called about every 10 ms until stopped, after received data were read. */
  start(onTick?: () => void): Stopwatch
}

/**
 * Milliseconds in which the event loop ran: a late tick counts as two at most. After a blockage, responses wait in
 * sockets, so the other side must not count as slow.
 */
export function createResponsiveTime(): ResponsiveTime {
  const ticking = new Set<{ readonly onTick: (() => void) | undefined }>()
  let spentMs = 0
  let lastTick = 0
  let timer: ReturnType<typeof setInterval> | undefined

  const sinceTick = () => Math.min(monotonicNow() - lastTick, 2 * TICK_MS)
  const tick = () => {
    spentMs += sinceTick()
    lastTick = monotonicNow()
    // A response that waits in a socket is not late: received data are read before `setImmediate` runs.
    setImmediate(() => {
      for (const one of ticking) one.onTick?.()
    })
  }

  return {
    start(onTick) {
      if (timer === undefined) {
        lastTick = monotonicNow()
        timer = setInterval(tick, TICK_MS)
        timer.unref()
      }
      const startedAt = spentMs + sinceTick()
      const one = { onTick }
      ticking.add(one)
      return {
        get spentMs() {
          return spentMs + sinceTick() - startedAt
        },
        stop() {
          if (!ticking.delete(one) || ticking.size > 0) return
          spentMs += sinceTick()
          clearInterval(timer)
          timer = undefined
        },
      }
    },
  }
}
