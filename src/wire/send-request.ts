import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { type BodyOwner, BodySender } from './body-sender.ts'
import type { WrittenRequest } from './request-head.ts'

/** A body up to this size is written together with its head: a copy is cheaper than a second write. */
const ONE_PIECE_BYTES = 16 * 1024

/**
 * A larger body is sent in pieces of this size, at the speed of the peer: TLS would keep a second, encrypted copy of
 * all of it.
 */
const PIECE_BYTES = 64 * 1024

/** Splits bytes into a stream of small pieces. */
export const inPieces = (bytes: Buffer): Readable => Readable.from(piecesOf(bytes), { objectMode: false })

function* piecesOf(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES)
}

/** Writes a request; returns the sender of a streamed body. */
export function sendRequest(socket: Socket, { head, body }: WrittenRequest, owner: BodyOwner): BodySender | undefined {
  if (body.kind === 'none') {
    socket.write(head, 'latin1')
    return undefined
  }
  if (body.kind === 'bytes' && body.bytes.length <= ONE_PIECE_BYTES) {
    socket.write(joined(head, body.bytes))
    return undefined
  }
  // Available body data is sent together with the head.
  socket.cork()
  socket.write(head, 'latin1')
  if (body.kind === 'bytes' && body.bytes.length <= PIECE_BYTES) {
    socket.write(body.bytes)
    socket.uncork()
    return undefined
  }
  const stream = body.kind === 'bytes' ? inPieces(body.bytes) : body.stream
  const length = body.kind === 'bytes' ? body.bytes.length : body.kind === 'length' ? body.length : undefined
  const sender = new BodySender(socket, stream, length, owner)
  sender.start()
  process.nextTick(uncork, socket)
  return sender
}

function joined(head: string, body: Buffer): Buffer {
  const bytes = Buffer.allocUnsafe(head.length + body.length)
  bytes.write(head, 0, 'latin1')
  body.copy(bytes, head.length)
  return bytes
}

const uncork = (socket: Socket): void => socket.uncork()
