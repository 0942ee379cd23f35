import type { ClientRequest } from '../core/index.ts'
import { jsonRpcIdOf, type Id } from '../mcp/index.ts'
import type { InboundRequest } from './inbound-request.ts'

/** A body that nobody has taken is looked at up to this size, and waited for so long, in milliseconds. */
const MAX_BYTES = 64 * 1024
const PATIENCE_MS = 50

/**
 * The JSON-RPC id of a request that is answered by us (decisions §5): from the body that was kept, or from one that is
 * there already or a moment later, as clients that send head and body apart have it.
 */
export async function rpcIdOf(inbound: InboundRequest): Promise<Id | undefined> {
  const { request, body } = inbound
  if (inbound.method !== 'POST' || inbound.localHandler !== undefined) return undefined
  if (body?.kind === 'kept') return told(inbound, body.bytes)
  if (request.isUpgrade || request.expectsContinue || !isSmall(request)) return undefined
  const bytes = await arriving(request)
  return bytes === undefined ? undefined : told(inbound, bytes)
}

function told({ trace }: InboundRequest, bytes: Buffer): Id | undefined {
  trace?.refusedBody?.(bytes)
  return jsonRpcIdOf(bytes)
}

/** Somebody who reads it already has taken it: for the backend, or because it was too large or too slow. */
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
      // It goes on flowing, away.
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
