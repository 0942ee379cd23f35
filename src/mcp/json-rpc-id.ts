import { type Id, parseMessage } from './message.ts'

/** Larger bodies are not parsed. */
const MAX_SEARCHED_BYTES = 1024 * 1024
const MAX_ID_LENGTH = 256

/**
 * Returns the ID of the single request in `body`, for an error response (JSON-RPC 2.0 §5). Undefined for
 * notifications, batches, other content, an ID that cannot be repeated exactly, and above 1 MiB.
 */
export function jsonRpcIdOf(body: Buffer): Id | undefined {
  if (body.length === 0 || body.length > MAX_SEARCHED_BYTES) return undefined
  const message = parseMessage(body)
  if (message.kind === 'notification' || message.id === null) return undefined
  if (message.kind === 'malformed' && message.isOther === true) return undefined
  const { id } = message
  if (typeof id === 'string') return id.length <= MAX_ID_LENGTH ? id : undefined
  return isExact(id) ? id : undefined
}

/** Larger integers may have been rounded by the parser. */
const isExact = (id: number): boolean => Number.isFinite(id) && Math.abs(id) <= Number.MAX_SAFE_INTEGER
