/** A larger body is not searched. */
const MAX_SEARCHED_BYTES = 1024 * 1024
const MAX_ID_LENGTH = 256

/** Id of a JSON-RPC request (JSON-RPC 2.0 §4). */
export type JsonRpcId = string | number

/**
 * The id of the one request that `body` holds, so that an error can be told to whoever asked (JSON-RPC 2.0 §5). Undefined
 * for notifications, batches, what is not JSON-RPC, an id that could not be given back as it came, and beyond 1 MiB.
 */
export function jsonRpcIdOf(body: Buffer): JsonRpcId | undefined {
  if (body.length === 0 || body.length > MAX_SEARCHED_BYTES) return undefined
  let message: unknown
  try {
    message = JSON.parse(body.toString('utf8'))
  } catch {
    return undefined
  }
  if (typeof message !== 'object' || message === null || Array.isArray(message)) return undefined
  const { jsonrpc, id } = message as { readonly jsonrpc?: unknown; readonly id?: unknown }
  if (jsonrpc !== '2.0') return undefined
  if (typeof id === 'string') return id.length <= MAX_ID_LENGTH ? id : undefined
  return typeof id === 'number' && isExact(id) ? id : undefined
}

/** Larger whole numbers may have been rounded when they were read. */
const isExact = (id: number): boolean => Number.isFinite(id) && Math.abs(id) <= Number.MAX_SAFE_INTEGER
