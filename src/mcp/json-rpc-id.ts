import { type Id, parseMessage } from './message.ts'

/** A larger body is not searched. */
const MAX_SEARCHED_BYTES = 1024 * 1024
const MAX_ID_LENGTH = 256

/**
 * The id of the one request that `body` holds, so that an error can be told to whoever asked (JSON-RPC 2.0 §5). Undefined
 * for notifications, batches, what is not JSON-RPC, an id that could not be given back as it came, and beyond 1 MiB.
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

/** Larger whole numbers may have been rounded when they were read. */
const isExact = (id: number): boolean => Number.isFinite(id) && Math.abs(id) <= Number.MAX_SAFE_INTEGER
