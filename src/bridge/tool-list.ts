import type { Flight } from './flights.ts'
import { statelessHeaders, type ToolParameters, isObject, type Params, EventReader } from '../mcp/index.ts'
import type { Wire } from './wire.ts'

const MAX_PAGES = 100
const ID = 'extauth-tools'

/**
 * Lists the server's tools for `flight`, whose headers lack values that its tool requires: the client has not listed
 * tools since the start (MCP 2026-07-28, custom headers).
 */
export async function learnTools(
  flight: Pick<Flight, 'request' | 'signal'>,
  version: string,
  wire: Wire,
  tools: ToolParameters,
): Promise<void> {
  let cursor: unknown = undefined
  for (let page = 0; page < MAX_PAGES; page++) {
    const params = { ...envelopeOf(flight.request.params), ...(cursor === undefined ? {} : { cursor }) }
    const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: ID, method: 'tools/list', params }))
    const answer = await wire.post(body, statelessHeaders(version, 'tools/list', params), flight.signal)
    let result: unknown = undefined
    for await (const message of wire.messages(answer, new EventReader(wire.reading.maxBytes))) {
      if (message.kind !== 'response' || message.id !== ID) continue
      ;({ result } = message)
      break
    }
    tools.learn(result)
    cursor = isObject(result) ? result['nextCursor'] : undefined
    if (typeof cursor !== 'string') return
  }
}

/** Client and revision of the request, without its content. */
function envelopeOf({ _meta: meta }: Params): Params {
  if (!isObject(meta)) return {}
  const own = Object.entries(meta).filter(([name]) => name.startsWith('io.modelcontextprotocol/'))
  return { _meta: Object.fromEntries(own) }
}
