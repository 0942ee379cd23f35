/** Time as an interface, for tests. */
export interface Timers {
  /** Milliseconds since the epoch. */
  now(): number
  /** Calls back once after `ms`; returns the cancel function. Does not keep the process alive. */
  after(ms: number, callback: () => void): () => void
}

export const systemTimers: Timers = {
  now: () => Date.now(),
  after(ms, callback) {
    const timer = setTimeout(callback, ms)
    timer.unref()
    return () => clearTimeout(timer)
  },
}

/** Resolves after `ms`, or at once if aborted. */
export function pause(timers: Timers, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve()
    const done = (): void => {
      cancel()
      signal.removeEventListener('abort', done)
      resolve()
    }
    const cancel = timers.after(ms, done)
    signal.addEventListener('abort', done)
  })
}
