import { PerformanceObserver } from 'node:perf_hooks'
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'

/** Both halves of the young generation: the same bound as `--max-semi-space-size=8` in the image (docs/adr/0341). */
const MAX_BYTES = 16 * 1024 * 1024

/**
 * Stops the growth of the young generation at 16 MiB (32 MiB after two collections in a row), however the process was started:
 * under load V8 lets it grow to 128 MiB, with the same CPU. V8 reads the option for its size only at its start, but the factor of growth at each collection. Does
 * nothing where `--max-semi-space-size` is set.
 */
export function boundYoungGeneration(options: string): void {
  if (options.replaceAll('_', '-').includes('--max-semi-space-size')) return
  const observer = new PerformanceObserver(() => {
    const young = getHeapSpaceStatistics().find((space) => space.space_name === 'new_space')
    if (young === undefined || young.space_size < MAX_BYTES) return
    setFlagsFromString('--semi-space-growth-factor=1')
    observer.disconnect()
  })
  observer.observe({ entryTypes: ['gc'] })
}
