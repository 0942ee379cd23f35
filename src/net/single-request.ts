import { OutboundError, type OutboundRequest, type OutboundResponse } from '../core/index.ts'
import { type BackendOptions, createDispatcher } from './backend.ts'
import { forwarderFor, refusedByProxy } from './egress.ts'
import { limitOfBackend, placed } from './limits.ts'
import { roundTrip, type RoundTripBounds } from './round-trip.ts'

/**
 * Sends one request to a backend on a new connection and reads the response within limits. Throws `OutboundError`, and
 * `Failure` config_error for an unreadable TLS file.
 */
export async function requestOnce(
  options: BackendOptions,
  request: OutboundRequest,
  bounds: RoundTripBounds,
): Promise<OutboundResponse> {
  const dispatcher = createDispatcher(options, options.http2)
  try {
    const response = await roundTrip(dispatcher, request, bounds)
    const proxy = response.status === 407 ? forwarderFor(new URL(options.origin), options.egressProxy) : undefined
    if (proxy !== undefined) throw refusedByProxy(proxy, response.status)
    return response
  } catch (error) {
    if (!(error instanceof OutboundError)) throw error
    const { kind, cause, isSent } = error
    const ofConnection = cause === undefined ? undefined : limitOfBackend(cause, options.timeouts)
    const failed = ofConnection === undefined ? error : new OutboundError(kind, { cause, isSent, limit: ofConnection })
    throw placed(failed, request.url, { ms: bounds.deadlineMs, bytes: bounds.maxBytes, atOnce: 1 })
  } finally {
    await dispatcher.destroy()
  }
}
