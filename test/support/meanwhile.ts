/**
 * Does something every `everyMs` milliseconds until all of these have ended, however they end: what a failed try left behind
 * would do it to the next one.
 */
export async function meanwhile<T>(everyMs: number, act: () => void, all: readonly Promise<T>[]): Promise<T[]> {
  const timer = setInterval(act, everyMs)
  try {
    return await Promise.all(all)
  } finally {
    clearInterval(timer)
  }
}
