import type { OutboundRequest, OutboundResponse } from '../core/index.ts'
import { type BackendOptions, createBackend } from './backend.ts'
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
  const backend = createBackend(options)
  try {
    return await roundTrip(backend.dispatcher, request, bounds)
  } finally {
    await backend.destroy()
  }
}
