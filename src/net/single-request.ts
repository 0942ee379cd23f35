import { OutboundError, type OutboundRequest, type OutboundResponse } from '../core/index.ts'
import { type BackendOptions, createDispatcher } from './backend.ts'
import { limitOfBackend, placed } from './limits.ts'
import { roundTrip, type RoundTripBounds } from './round-trip.ts'

/**
 * One request to a backend on a connection of its own, the whole answer read within bounds. Throws `OutboundError`, and
 * `Failure` config_error when a TLS file can't be read.
 */
export async function requestOnce(
  options: BackendOptions,
  request: OutboundRequest,
  bounds: RoundTripBounds,
): Promise<OutboundResponse> {
  const dispatcher = createDispatcher(options, options.http2)
  try {
    return await roundTrip(dispatcher, request, bounds)
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
