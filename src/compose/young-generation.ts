import { PerformanceObserver } from 'node:perf_hooks'
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'

/** Size of both halves of the young generation: the limit of `--max-semi-space-size=8` in the image (docs/adr/0341). */
const MAX_BYTES = 16 * 1024 * 1024

/**
 * Limits the young generation to 16 MiB (32 MiB after two collections in a row). Under load V8 would let it grow to
 * 128 MiB, without saving CPU. V8 reads its maximum size only at start, but the growth factor at each collection.
 * Does nothing if `--max-semi-space-size` is set.
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
