import type { IntrusiveSet, Listener } from '../listen/index.ts'
import type { InboundRequest } from './inbound-request.ts'
import type { Handler } from './handler.ts'

/**
 * Ends a proxy without cutting anybody short (decisions §7, Sessions): no new connections, 503 on the ones that are open.
 * What a GET opened never ends by itself and is opened again by its client, so it ends at once, cleanly. Answers to
 * everything else have `graceMs`; what is still running then is cut so that its client can tell.
 */
export async function drainProxy(
  listener: Listener,
  handler: Handler,
  active: IntrusiveSet<InboundRequest>,
  graceMs: number,
): Promise<void> {
  handler.refuse()
  listener.stop()
  for (const inbound of active) if (inbound.method === 'GET') inbound.endStream()
  await listener.emptied(graceMs)
  await listener.close()
}
