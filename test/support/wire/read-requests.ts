import type { ReceivedHead } from '../../../src/wire/received-head.ts'
import { RequestReader } from '../../../src/wire/request-reader.ts'
import { WireError } from '../../../src/wire/wire-error.ts'

const NOTHING = Buffer.alloc(0)

export interface ReadRequest {
  readonly head: ReceivedHead
  readonly body: Buffer
}

/** The parsed result of a connection's bytes. */
export interface ReadRequests {
  /** Those that are whole. */
  readonly whole: readonly ReadRequest[]
  /** Why it was read no further (another protocol has begun); `open` where more may come. */
  readonly end: 'open' | 'refused' | 'too-large' | 'upgrade'
  /** Bytes of the other protocol. */
  readonly unread: Buffer
}

/** Reads requests in these pieces; another protocol begins behind each that asks for one. */
export function readRequests(pieces: readonly Buffer[], maxHeadBytes = 16 * 1024): ReadRequests {
  const whole: ReadRequest[] = []
  let head: ReceivedHead | undefined
  let body: Buffer[] = []
  const sink = {
    onHead: (read: ReceivedHead) => {
      head = read
      if (read.upgrade !== undefined) whole.push({ head, body: NOTHING })
      return read.upgrade !== undefined
    },
    onBody: (data: Buffer) => void body.push(data),
    onEnd: () => {
      if (head !== undefined) whole.push({ head, body: Buffer.concat(body) })
      body = []
      return true
    },
  }
  const reader = new RequestReader(sink, maxHeadBytes)
  const unread: Buffer[] = []
  for (const piece of pieces) {
    try {
      unread.push(reader.read(piece) ?? NOTHING)
    } catch (error) {
      if (!(error instanceof WireError)) throw error
      return { whole, end: error.code === 'WIRE_HEAD_TOO_LARGE' ? 'too-large' : 'refused', unread: NOTHING }
    }
  }
  return { whole, end: reader.isHeld ? 'upgrade' : 'open', unread: Buffer.concat(unread) }
}

/** Bytes of the first requests, as many as `count`. */
export function bytesOf(bytes: Buffer, count: number): number {
  let whole = 0
  const sink = {
    onHead: ({ upgrade }: ReceivedHead) => upgrade !== undefined && ++whole > 0,
    onBody: () => {},
    onEnd: () => ++whole > 0,
  }
  const reader = new RequestReader(sink, 16 * 1024)
  for (let at = 0; at < bytes.length; at++) {
    reader.read(bytes.subarray(at, at + 1))
    if (whole === count) return at + 1
  }
  return bytes.length
}
