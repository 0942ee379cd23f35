const TICK_MS = 10

/** How long something took, without the time in which this process could not have noticed its end. */
export interface Stopwatch {
  readonly spentMs: number
  stop(): void
}

export interface ResponsiveTime {
  /** Starts one; `onTick` is called every 10 ms or so until it is stopped, after what has arrived was read. */
  start(onTick?: () => void): Stopwatch
}

/**
 * Milliseconds in which the event loop ran: a tick that comes late counts as two at most. A process that was busy for long
 * finds the answers of that time in its sockets, and must not call who sent them slow.
 */
export function createResponsiveTime(): ResponsiveTime {
  const ticking = new Set<{ readonly onTick: (() => void) | undefined }>()
  let spentMs = 0
  let lastTick = 0
  let timer: ReturnType<typeof setInterval> | undefined

  const sinceTick = () => Math.min(performance.now() - lastTick, 2 * TICK_MS)
  const tick = () => {
    spentMs += sinceTick()
    lastTick = performance.now()
    // An answer that lies in a socket already is not late: what was received is read before `setImmediate` runs.
    setImmediate(() => {
      for (const one of ticking) one.onTick?.()
    })
  }

  return {
    start(onTick) {
      if (timer === undefined) {
        lastTick = performance.now()
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
