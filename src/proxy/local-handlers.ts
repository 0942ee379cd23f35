import { type EndpointResponse, Failure, type LocalHandler, type LocalRequest } from '../core/index.ts'
import { takeBody } from './body.ts'
import type { BodyWatch } from './body-watch.ts'
import type { InboundRequest } from './inbound-request.ts'

/** The proxy's own endpoints by address. */
export interface LocalHandlers {
  find(path: string, query: string): LocalHandler | undefined
}

/** A body that means nothing to its endpoint is read away up to this many bytes; a larger one is refused. */
const MEANINGLESS_BYTES = 64 * 1024
/** The end of a path that takes any last segment. */
const ANY_SEGMENT = '/*'
const NO_BYTES = Buffer.alloc(0)

/** The endpoints by address. Throws `config_error` for two at one address. */
export function createLocalHandlers(handlers: readonly LocalHandler[]): LocalHandlers {
  const byAddress = new Map<string, LocalHandler>()
  for (const handler of handlers) {
    const address = addressOf(handler.path, handler.exactQuery)
    if (byAddress.has(address)) throw new Failure('config_error', { detail: `two endpoints at ${address}` })
    byAddress.set(address, handler)
  }
  const hasPatterns = handlers.some(({ path }) => path.endsWith(ANY_SEGMENT))
  return {
    find(path, query) {
      const exact = query === '' ? undefined : byAddress.get(addressOf(path, query))
      const found = exact ?? byAddress.get(path)
      if (found !== undefined || !hasPatterns) return found
      return byAddress.get(path.slice(0, path.lastIndexOf('/')) + ANY_SEGMENT)
    },
  }
}

const addressOf = (path: string, query: string | undefined): string => (query === undefined ? path : `${path}?${query}`)

/** The methods of an endpoint for `Allow`. */
export function allowedMethods({ methods }: LocalHandler): string {
  return [...new Set(methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))), 'OPTIONS'].join(
    ', ',
  )
}

/**
 * The response of a local endpoint; undefined if its client has disconnected. Throws `Failure`: `method_not_allowed`,
 * `body_too_large`, `request_timeout`, and failures of the endpoint.
 */
export async function runLocalHandler(
  inbound: InboundRequest,
  handler: LocalHandler,
  watch: BodyWatch,
): Promise<EndpointResponse | undefined> {
  const { request, method } = inbound
  if (!handler.methods.includes(method === 'HEAD' ? 'GET' : method))
    throw new Failure('method_not_allowed', { detail: 'an endpoint of our own' })
  const limitBytes = handler.bodyLimitBytes === 0 ? MEANINGLESS_BYTES : handler.bodyLimitBytes
  const body = await takeBody(inbound, { mustKeep: true, limitBytes, watch })
  if (inbound.gone) return undefined
  const local: LocalRequest = {
    request,
    id: inbound.id,
    method,
    path: inbound.path,
    query: inbound.query,
    body: body.kind === 'kept' && handler.bodyLimitBytes > 0 ? body.bytes : NO_BYTES,
    client: inbound.connection.peer.clientOf(request),
  }
  const answer = await handler.handle(local)
  return inbound.gone ? undefined : answer
}
