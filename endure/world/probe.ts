import { renameSync, writeFileSync } from 'node:fs'
import { constants, type PerformanceEntry, PerformanceObserver } from 'node:perf_hooks'
import { setFlagsFromString, writeHeapSnapshot } from 'node:v8'

/**
 * Loaded into a process before the program (`--import`); writes into the files that `ENDURE_PROBE` begins the names of. Changes
 * nothing of what the program does.
 */
const probe = process.env['ENDURE_PROBE'] ?? ''

/** Beside the heap what it holds outside: buffers. Usage between two collections says little about held memory. */
new PerformanceObserver((list) => {
  if (!list.getEntries().some(isFull)) return
  try {
    // It opens a file as well.
    const { heapUsed, external } = process.memoryUsage()
    put(`${probe}.live`, (file) => writeFileSync(file, String(heapUsed + external)))
  } catch {
    // A process without descriptors has none for this either; the next collection says it again.
  }
}).observe({ entryTypes: ['gc'] })

const isFull = ({ detail }: PerformanceEntry & { detail?: unknown }): boolean =>
  (detail as { kind?: number } | undefined)?.kind === constants.NODE_PERFORMANCE_GC_MAJOR

// This signal is not sent to a process without a terminal.
process.on('SIGWINCH', () => {
  // Long texts are cut otherwise, and a secret may lie behind the cut.
  setFlagsFromString('--heap-snapshot-string-limit=100000000')
  put(`${probe}.heapsnapshot`, (file) => writeHeapSnapshot(file))
})

/** Written beside and moved into place, so that who finds it finds all of it. */
function put(file: string, write: (beside: string) => void): void {
  write(`${file}.new`)
  renameSync(`${file}.new`, file)
}
