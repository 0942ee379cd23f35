import type { Registry } from 'prom-client'
import Counter from 'prom-client/lib/counter.js'
import eventLoopLag from 'prom-client/lib/metrics/eventLoopLag.js'
import gc from 'prom-client/lib/metrics/gc.js'
import heapSizeAndUsed from 'prom-client/lib/metrics/heapSizeAndUsed.js'
import heapSpacesSizeAndUsed from 'prom-client/lib/metrics/heapSpacesSizeAndUsed.js'
import osMemoryHeap from 'prom-client/lib/metrics/osMemoryHeap.js'
import processHandles from 'prom-client/lib/metrics/processHandles.js'
import processMaxFileDescriptors from 'prom-client/lib/metrics/processMaxFileDescriptors.js'
import processOpenFileDescriptors from 'prom-client/lib/metrics/processOpenFileDescriptors.js'
import processRequests from 'prom-client/lib/metrics/processRequests.js'
import processResources from 'prom-client/lib/metrics/processResources.js'
import processStartTime from 'prom-client/lib/metrics/processStartTime.js'
import version from 'prom-client/lib/metrics/version.js'

const OF_PROM_CLIENT = [
  processStartTime,
  osMemoryHeap,
  processOpenFileDescriptors,
  processMaxFileDescriptors,
  eventLoopLag,
  processResources,
  processHandles,
  processRequests,
  heapSizeAndUsed,
  heapSpacesSizeAndUsed,
  version,
  gc,
]

/** Sampling interval of the event loop delay in milliseconds: prom-client's default. */
const EVENT_LOOP_PRECISION_MS = 10

/**
 * Collects `process_*` and `nodejs_*`, like `collectDefaultMetrics` of prom-client, but without its CPU metrics, which
 * load a tracing API (51 files) for unused exemplars.
 */
export function collectProcessMetrics(registry: Registry): void {
  cpuTime(registry)
  for (const collect of OF_PROM_CLIENT) collect(registry, { eventLoopMonitoringPrecision: EVENT_LOOP_PRECISION_MS })
}

function cpuTime(registry: Registry): void {
  let last = process.cpuUsage()
  const seconds = (kind: string, whose: string, collect?: () => void): Counter =>
    new Counter({
      name: `process_cpu_${kind}seconds_total`,
      help: `Total ${whose} CPU time spent in seconds.`,
      registers: [registry],
      ...(collect === undefined ? {} : { collect }),
    })
  // The first of the three reads the values for all.
  const user = seconds('user_', 'user', () => {
    const now = process.cpuUsage()
    const [userSeconds, systemSeconds] = [(now.user - last.user) / 1e6, (now.system - last.system) / 1e6]
    last = now
    user.inc(userSeconds)
    system.inc(systemSeconds)
    both.inc(userSeconds + systemSeconds)
  })
  const system = seconds('system_', 'system')
  const both = seconds('', 'user and system')
}
