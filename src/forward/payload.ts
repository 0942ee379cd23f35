import { Readable } from 'node:stream'
import type { Body, RequestTrace } from '../core/index.ts'

/** A kept body that is larger goes out in pieces of this size, in bytes. */
const PIECE_BYTES = 64 * 1024

/**
 * A body as an exchange takes it. A large one that is kept is written piece by piece as the backend reads: written whole, TLS
 * would hold all of it a second time, encrypted.
 */
export function payloadOf(body: Body): Buffer | Readable | null {
  if (body.kind === 'stream') return body.stream
  if (body.kind === 'none') return null
  return body.bytes.length <= PIECE_BYTES ? body.bytes : Readable.from(piecesOf(body.bytes), { objectMode: false })
}

/** Exchanges begin to read a streamed body in this very turn: who listens from here on misses nothing and starts nothing. */
export function tellSending(trace: RequestTrace, body: Body): void {
  trace.sending()
  if (body.kind === 'stream' && trace.requestBody !== undefined)
    body.stream.on('data', (chunk: Buffer) => trace.requestBody?.(chunk))
}

function* piecesOf(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES)
}
