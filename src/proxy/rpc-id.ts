import type { ClientRequest } from '../core/index.ts'
import { jsonRpcIdOf, type Id } from '../mcp/index.ts'
import type { InboundRequest } from './inbound-request.ts'

/** Maximum size of an unread body that is examined, and milliseconds to wait for it. */
const MAX_BYTES = 64 * 1024
const PATIENCE_MS = 50

/**
 * The JSON-RPC id of a request that the proxy answers itself (decisions §5): from the buffered body, or from one that
 * is available or arrives shortly after the head.
 */
export async function rpcIdOf(inbound: InboundRequest): Promise<Id | undefined> {
  const { request, body } = inbound
  if (inbound.method !== 'POST' || inbound.localHandler !== undefined) return undefined
  if (body?.kind === 'kept') return foundId(inbound, body.bytes)
  if (request.isUpgrade || request.expectsContinue || !isSmall(request)) return undefined
  const bytes = await arriving(request)
  return bytes === undefined ? undefined : foundId(inbound, bytes)
}

function foundId({ trace }: InboundRequest, bytes: Buffer): Id | undefined {
  trace?.refusedBody?.(bytes)
  return jsonRpcIdOf(bytes)
}

/** A body with a reader is excluded: it was forwarded, or rejected as too large or too slow. */
function isSmall(request: ClientRequest): boolean {
  if (request.destroyed || request.listenerCount('data') > 0) return false
  if (request.headers['transfer-encoding'] !== undefined) return true
  const length = Number(request.headers['content-length'] ?? 0)
  return length > 0 && length <= MAX_BYTES
}

function arriving(request: ClientRequest): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let bytes = 0
    const settle = (found: Buffer | undefined): void => {
      clearTimeout(timer)
      // The rest of the body is discarded.
      request.off('data', onData).off('end', onEnd).off('close', onClose)
      resolve(found)
    }
    const onData = (chunk: Buffer): void => {
      bytes += chunk.length
      if (bytes > MAX_BYTES) settle(undefined)
      else chunks.push(chunk)
    }
    const onEnd = (): void => settle(Buffer.concat(chunks))
    const onClose = (): void => settle(undefined)
    const timer = setTimeout(onClose, PATIENCE_MS)
    request.on('data', onData).on('end', onEnd).on('close', onClose)
  })
}
