/** A function that calls `act` at once, and then at most once in each interval however often it is called. */
export function atMostOnceIn(intervalMs, act) {
  let lastMs = Number.NEGATIVE_INFINITY
  let timer
  const run = () => {
    timer = undefined
    lastMs = performance.now()
    act()
  }
  const call = () => {
    if (timer !== undefined) return
    const waitMs = lastMs + intervalMs - performance.now()
    if (waitMs <= 0) run()
    else timer = setTimeout(run, waitMs)
  }
  return { call, stop: () => clearTimeout(timer) }
}
