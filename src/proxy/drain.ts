import { Failure, type Log } from '../core/index.ts'
import type { IntrusiveSet, Listener } from '../listen/index.ts'
import type { InboundRequest } from './inbound-request.ts'
import type { Handler } from './handler.ts'

/** Maximum log lines about aborted responses; a final line reports the number of the others. */
const MAX_ABORT_LINES = 20

export interface DrainOptions {
  readonly listener: Listener
  readonly handler: Handler
  readonly active: IntrusiveSet<InboundRequest>
  readonly log: Log
  /** Milliseconds. */
  readonly graceMs: number
}

/**
 * Stops a proxy gracefully (decisions §7, Sessions): no new connections, 503 on open ones. GET streams never end on
 * their own and are reopened by clients, so they end at once, cleanly. All other responses have `graceMs`; the rest
 * is aborted so that the client notices. The log reports what is in flight, and each abort.
 */
export async function drainProxy({ listener, handler, active, log, graceMs }: DrainOptions): Promise<void> {
  handler.refuse()
  listener.stop()
  let [requests, streams] = [0, 0]
  for (const inbound of active) {
    if (inbound.method === 'GET' && inbound.endStream()) streams++
    else requests++
  }
  if (requests + streams > 0) log.info({ requests, endedStreams: streams, graceMs }, 'draining in-flight requests')
  await listener.emptied(graceMs)
  for (const inbound of active)
    inbound.cutFor ??= new Failure('draining', {
      detail: 'the proxy stopped before the response was complete',
      limit: { amount: graceMs, unit: 'ms' },
    })
  logAborted([...active], log)
  await listener.close()
}

function logAborted(aborted: readonly InboundRequest[], log: Log): void {
  for (const inbound of aborted.slice(0, MAX_ABORT_LINES)) {
    const { id: requestId, route, method, ageMs } = inbound
    log.warn({ requestId, route: route?.name ?? '', method, durationMs: ageMs }, 'response aborted: drain timeout')
  }
  const more = aborted.length - MAX_ABORT_LINES
  if (more > 0) log.warn({ requests: more }, 'more responses aborted: drain timeout')
}
