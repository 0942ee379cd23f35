import type { Duplex } from 'node:stream'

/** Frame types and flags of RFC 9113 §6 that a test needs. */
export const FRAME = { data: 0, headers: 1, reset: 3, settings: 4, goAway: 7 } as const
const END_STREAM = 1
const END_HEADERS = 4
const ACK = 1
const PREFACE_BYTES = 24
/** HPACK (RFC 7541 §6.1): `:status: 200` of the static table. */
const STATUS_200 = Buffer.from([0x88])

const uint32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

/** A frame as sent on the wire. */
const frame = (type: number, flags: number, stream: number, payload: Buffer = Buffer.alloc(0)): Buffer => {
  const head = Buffer.alloc(5)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = type
  head[4] = flags
  return Buffer.concat([head, uint32(stream), payload])
}

/** A server's frames on one stream. */
export interface FrameStream {
  readonly id: number
  /** `:status: 200`. */
  head(options?: { readonly end: boolean }): void
  data(text: string, options?: { readonly end: boolean }): void
  reset(code: number): void
  /** GOAWAY that covers this stream, and the end of the connection. */
  goAway(code: number): void
}

/** A server of HTTP/2 that is nothing but its frames, so that it can break the rules. `onRequest` is called when a request is whole. */
export const serveFrames = (connection: Duplex, onRequest: (stream: FrameStream) => void): void => {
  let waiting = Buffer.alloc(0)
  let hasPreface = false
  connection.write(frame(FRAME.settings, 0, 0))
  connection.on('error', () => undefined)
  connection.on('data', (chunk: Buffer) => {
    waiting = Buffer.concat([waiting, chunk])
    if (!hasPreface) {
      if (waiting.length < PREFACE_BYTES) return
      hasPreface = true
      waiting = waiting.subarray(PREFACE_BYTES)
    }
    while (waiting.length >= 9 && waiting.length >= 9 + waiting.readUIntBE(0, 3)) {
      const length = waiting.readUIntBE(0, 3)
      const [type, flags, id] = [waiting[3], waiting[4] ?? 0, waiting.readUInt32BE(5)]
      waiting = waiting.subarray(9 + length)
      if (type === FRAME.settings && (flags & ACK) === 0) connection.write(frame(FRAME.settings, ACK, 0))
      const isRequestFrame = type === FRAME.headers || type === FRAME.data
      if (isRequestFrame && (flags & END_STREAM) !== 0) onRequest(streamOf(connection, id))
    }
  })
}

const streamOf = (connection: Duplex, id: number): FrameStream => ({
  id,
  head: ({ end } = { end: false }) =>
    void connection.write(frame(FRAME.headers, END_HEADERS | (end ? END_STREAM : 0), id, STATUS_200)),
  data: (text, { end } = { end: false }) =>
    void connection.write(frame(FRAME.data, end ? END_STREAM : 0, id, Buffer.from(text))),
  reset: (code) => void connection.write(frame(FRAME.reset, 0, id, uint32(code))),
  goAway: (code) => void connection.end(frame(FRAME.goAway, 0, 0, Buffer.concat([uint32(id), uint32(code)]))),
})
