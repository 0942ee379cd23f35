const LF = 0x0a
const CR = 0x0d
const COLON = 0x3a
const SPACE = 0x20
const MAX_ID_BYTES = 4096
const LONGEST_FIELD = 'event'.length
const DATA_BREAK = Uint8Array.of(LF)
const utf8 = new TextDecoder('utf-8', { ignoreBOM: true })

/** An event exceeds the limit. */
export class OversizedEvent extends Error {
  override readonly name = 'OversizedEvent'
  override readonly message = 'event above the size limit'
}

/** An event with data of an event stream (HTML standard §9.2.6). */
export interface ServerEvent {
  /** `message` by default. */
  readonly type: string
  readonly data: Uint8Array
}

/**
 * Parses an event stream from bytes, in Node and in browsers; chunks may split characters and lines. Buffers at most
 * `maxBytes` of an event. Throws `OversizedEvent` above.
 */
export class EventReader {
  readonly #maxBytes: number
  #parts: Uint8Array[] = []
  #held = 0
  #skipsLineFeed = false
  #isFirstLine = true
  #type = ''
  #data: Uint8Array[] = []
  #pendingId: string | undefined
  /** ID of the last complete event, with or without data, to resume from. */
  lastEventId: string | undefined
  /** Received bytes, including comments. */
  receivedBytes = 0
  /** Reconnect time requested by the server, in milliseconds. */
  retryMs: number | undefined

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Continues with a new stream after the end of the last; incomplete data are sent again. */
  restart(): void {
    this.#parts = []
    this.#held = 0
    this.#skipsLineFeed = false
    this.#isFirstLine = true
    this.#type = ''
    this.#data = []
    this.#pendingId = undefined
  }

  /** The events completed by this chunk. */
  push(chunk: Uint8Array): ServerEvent[] {
    const events: ServerEvent[] = []
    let start = 0
    this.receivedBytes += chunk.length
    if (this.#skipsLineFeed && chunk.length > 0) {
      if (chunk[0] === LF) start = 1
      this.#skipsLineFeed = false
    }
    while (start < chunk.length) {
      const end = lineEnd(chunk, start)
      if (end === -1) {
        this.#hold(chunk.subarray(start))
        break
      }
      this.#hold(chunk.subarray(start, end))
      start = end + 1
      if (chunk[end] === CR) {
        if (start === chunk.length) this.#skipsLineFeed = true
        else if (chunk[start] === LF) start++
      }
      const line = joined(this.#parts)
      this.#parts = []
      const event = this.#line(line)
      if (event !== undefined) events.push(event)
    }
    return events
  }

  #hold(part: Uint8Array): void {
    this.#held += part.length
    if (this.#held > this.#maxBytes) throw new OversizedEvent()
    this.#parts.push(part)
  }

  #line(whole: Uint8Array): ServerEvent | undefined {
    const line = this.#isFirstLine ? withoutMark(whole) : whole
    this.#isFirstLine = false
    if (line.length === 0) return this.#dispatch()
    const colon = line.indexOf(COLON)
    if (colon === 0) {
      this.#held -= line.length
      return undefined
    }
    const name = fieldOf(line, colon === -1 ? line.length : colon)
    const from = colon === -1 ? line.length : line[colon + 1] === SPACE ? colon + 2 : colon + 1
    const value = line.subarray(from)
    if (name === 'data') this.#data.push(value)
    else if (name === 'event') this.#type = utf8.decode(value)
    else if (name === 'id' && !value.includes(0) && value.length <= MAX_ID_BYTES) this.#pendingId = utf8.decode(value)
    else if (name === 'retry' && value.length <= 9 && /^\d+$/.test(utf8.decode(value)))
      this.retryMs = Number(utf8.decode(value))
    return undefined
  }

  #dispatch(): ServerEvent | undefined {
    const lines = this.#data
    const type = this.#type === '' ? 'message' : this.#type
    if (this.#pendingId !== undefined) this.lastEventId = this.#pendingId === '' ? undefined : this.#pendingId
    this.#data = []
    this.#type = ''
    this.#pendingId = undefined
    this.#held = 0
    if (lines.length === 0) return undefined
    const data = joined(lines.flatMap((line, index) => (index === 0 ? [line] : [DATA_BREAK, line])))
    return data.length === 0 ? undefined : { type, data }
  }
}

function lineEnd(chunk: Uint8Array, start: number): number {
  const lf = chunk.indexOf(LF, start)
  const cr = (lf === -1 ? chunk.subarray(start) : chunk.subarray(start, lf)).indexOf(CR)
  return cr === -1 ? lf : start + cr
}

/** The name of a field; empty if longer than any known one. */
function fieldOf(line: Uint8Array, end: number): string {
  let name = ''
  if (end <= LONGEST_FIELD) for (let at = 0; at < end; at++) name += String.fromCodePoint(line[at] ?? 0)
  return name
}

const withoutMark = (line: Uint8Array): Uint8Array =>
  line[0] === 0xef && line[1] === 0xbb && line[2] === 0xbf ? line.subarray(3) : line

/** Concatenates parts; a single part is returned as it is. */
function joined(parts: readonly Uint8Array[]): Uint8Array {
  const [only] = parts
  if (parts.length === 1 && only !== undefined) return only
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}
