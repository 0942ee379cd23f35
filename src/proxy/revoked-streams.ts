import type { IntrusiveSet } from '../listen/index.ts'
import type { InboundRequest } from './inbound-request.ts'

/** All replicas refuse the tokens of an ended session within 2 s (authserver.md §3), and this comes on top. */
const LOOK_EVERY_MS = 500

/** Ends GET streams whose caller's session was revoked: their token is not shown again. */
export function watchRevoked(active: IntrusiveSet<InboundRequest>): { close(): void } {
  const timer = setInterval(() => {
    for (const inbound of active) inbound.endIfRevoked()
  }, LOOK_EVERY_MS).unref()
  return { close: () => clearInterval(timer) }
}
