import { Failure, type Log } from '../core/index.ts'
import type { IntrusiveSet, Listener } from '../listen/index.ts'
import type { InboundRequest } from './inbound-request.ts'
import type { Handler } from './handler.ts'

/** Most lines about answers that are cut; the last one tells how many more there are. */
const MAX_CUT_LINES = 20

export interface DrainOptions {
  readonly listener: Listener
  readonly handler: Handler
  readonly active: IntrusiveSet<InboundRequest>
  readonly log: Log
  /** Milliseconds. */
  readonly graceMs: number
}

/**
 * Ends a proxy without cutting anybody short (decisions §7, Sessions): no new connections, 503 on the ones that are open.
 * What a GET opened never ends by itself and is opened again by its client, so it ends at once, cleanly. Answers to
 * everything else have `graceMs`; what is still running then is cut so that its client can tell. The log says what is waited
 * for, and each that is cut.
 */
export async function drainProxy({ listener, handler, active, log, graceMs }: DrainOptions): Promise<void> {
  handler.refuse()
  listener.stop()
  let [requests, streams] = [0, 0]
  for (const inbound of active) {
    if (inbound.method === 'GET' && inbound.endStream()) streams++
    else requests++
  }
  if (requests + streams > 0) log.info({ requests, endedStreams: streams, graceMs }, 'waiting for answers under way')
  await listener.emptied(graceMs)
  for (const inbound of active)
    inbound.cutFor ??= new Failure('draining', {
      detail: 'the proxy stopped before the answer was whole',
      limit: { amount: graceMs, unit: 'ms' },
    })
  tellCut([...active], log)
  await listener.close()
}

function tellCut(cut: readonly InboundRequest[], log: Log): void {
  for (const inbound of cut.slice(0, MAX_CUT_LINES)) {
    const { id: requestId, route, method, ageMs } = inbound
    log.warn({ requestId, route: route?.name ?? '', method, durationMs: ageMs }, 'answer cut, its time is over')
  }
  const more = cut.length - MAX_CUT_LINES
  if (more > 0) log.warn({ requests: more }, 'more answers cut, their time is over')
}
