import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { type BodyOwner, BodySender } from './body-sender.ts'
import type { WrittenRequest } from './request-head.ts'

/** A body up to this size is written in one piece with its head: to copy it costs less than a second piece. */
const ONE_PIECE_BYTES = 16 * 1024

/** A larger body goes out in pieces of this size, as the peer reads: written whole, TLS would hold all of it again, encrypted. */
const PIECE_BYTES = 64 * 1024

/** Bytes as a stream of small pieces. */
export const inPieces = (bytes: Buffer): Readable => Readable.from(piecesOf(bytes), { objectMode: false })

function* piecesOf(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES)
}

/** Writes a request; gives who sends its body, where that is a stream. */
export function sendRequest(socket: Socket, { head, body }: WrittenRequest, owner: BodyOwner): BodySender | undefined {
  if (body.kind === 'none') {
    socket.write(head, 'latin1')
    return undefined
  }
  if (body.kind === 'bytes' && body.bytes.length <= ONE_PIECE_BYTES) {
    socket.write(joined(head, body.bytes))
    return undefined
  }
  // What there is of the body already goes out with the head.
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
