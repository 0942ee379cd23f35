import type { ReceivedHead } from '../../../src/wire/received-head.ts'
import { RequestReader } from '../../../src/wire/request-reader.ts'
import { WireError } from '../../../src/wire/wire-error.ts'

const NOTHING = Buffer.alloc(0)

export interface ReadRequest {
  readonly head: ReceivedHead
  readonly body: Buffer
}

/** What became of the bytes of a connection. */
export interface ReadRequests {
  /** Those that are whole. */
  readonly whole: readonly ReadRequest[]
  /** Why it was read no further; `open` where more may come. */
  readonly end: 'open' | 'refused' | 'strange' | 'connect' | 'upgrade'
  /** What was given back. */
  readonly unread: Buffer
}

/** Reads requests in these pieces. */
export function readRequests(pieces: readonly Buffer[], maxHeadBytes = 16 * 1024): ReadRequests {
  const whole: ReadRequest[] = []
  let head: ReceivedHead | undefined
  let body: Buffer[] = []
  const sink = {
    onHead: (read: ReceivedHead) => void (head = read),
    onBody: (data: Buffer) => void body.push(data),
    onEnd: () => {
      if (head !== undefined) whole.push({ head, body: Buffer.concat(body) })
      body = []
      return true
    },
  }
  const reader = new RequestReader(sink, maxHeadBytes)
  for (const [index, piece] of pieces.entries()) {
    try {
      const unread = reader.read(piece)
      if (unread === undefined || unread.why === 'next') continue
      return {
        whole,
        end: typeof unread.why === 'string' ? unread.why : 'upgrade',
        unread: Buffer.concat([unread.bytes, ...pieces.slice(index + 1)]),
      }
    } catch (error) {
      if (!(error instanceof WireError)) throw error
      return { whole, end: 'refused', unread: NOTHING }
    }
  }
  return { whole, end: 'open', unread: reader.stop() }
}

/** Bytes of the first requests, as many as `count`. */
export function bytesOf(bytes: Buffer, count: number): number {
  let whole = 0
  const reader = new RequestReader({ onHead: () => {}, onBody: () => {}, onEnd: () => ++whole > 0 }, 16 * 1024)
  for (let at = 0; at < bytes.length; at++) {
    reader.read(bytes.subarray(at, at + 1))
    if (whole === count) return at + 1
  }
  return bytes.length
}
