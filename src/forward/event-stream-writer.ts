import type { ClientResponse, InsertEvents, RequestTrace } from '../core/index.ts'

const LF = 0x0a
const CR = 0x0d
const COMMENT = Buffer.from(':\n\n')
/** Events that wait for the end of one of the backend's; the oldest is dropped above. */
const MOST_WAITING = 8

export interface EventStreamOptions {
  /** Interval of comments during silence, in milliseconds; 0 = none. */
  readonly keepAliveMs: number
  /** Events of the proxy. */
  readonly insertEvents: InsertEvents | undefined
  /** Sees the events of the proxy. */
  readonly trace: RequestTrace | undefined
}

/**
 * Passes an event stream on unchanged, and adds to it between events only: within a line, an addition would become part
 * of it (HTML standard, §9.2.6). Comments after silence keep intermediaries from closing the stream.
 */
export class EventStreamWriter {
  readonly #response: ClientResponse
  readonly #timer: NodeJS.Timeout | undefined
  readonly #stopInserts: (() => void) | undefined
  readonly #trace: RequestTrace | undefined
  readonly #waiting: Buffer[] = []
  // The last four bytes passed on; a new stream is between events.
  #tail = (LF << 8) | LF

  constructor(response: ClientResponse, { keepAliveMs, insertEvents, trace }: EventStreamOptions) {
    this.#response = response
    this.#trace = trace
    if (keepAliveMs > 0) this.#timer = setInterval(() => this.#beat(), keepAliveMs)
    this.#stopInserts = insertEvents?.((event) => this.#insert(event))
  }

  /** Like `response.write`. */
  write(chunk: Buffer): boolean {
    this.#timer?.refresh()
    if (this.#waiting.length > 0) return this.#writeAround(chunk)
    this.#note(chunk)
    return this.#response.write(chunk)
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#stopInserts?.()
    this.#waiting.length = 0
  }

  #insert(event: Buffer): void {
    if (this.#waiting.length === MOST_WAITING) this.#waiting.shift()
    this.#waiting.push(event)
    if (!this.#response.writableNeedDrain) this.#writeWaiting()
    else if (this.#waiting.length === 1) this.#response.once('drain', () => this.#writeWaiting())
  }

  /** Writes what waits at the first place between events, and the rest of the chunk after it. */
  #writeAround(chunk: Buffer): boolean {
    let at = 0
    while (at < chunk.length && !(this.#isBetweenEvents() && !this.#isWithinLineEnd(chunk[at])))
      this.#noteByte(chunk[at++] ?? 0)
    if (at > 0) this.#response.write(chunk.subarray(0, at))
    this.#writeWaiting()
    const rest = chunk.subarray(at)
    this.#note(rest)
    if (rest.length > 0) this.#response.write(rest)
    return !this.#response.writableNeedDrain
  }

  #writeWaiting(): void {
    if (this.#waiting.length === 0 || this.#response.writableEnded || !this.#isBetweenEvents()) return
    const events = Buffer.concat(this.#waiting.splice(0))
    this.#trace?.body(events)
    this.#response.write(events)
  }

  #beat(): void {
    // A blocked client needs no comment.
    if (this.#isBetweenEvents() && !this.#response.writableNeedDrain) this.#response.write(COMMENT)
  }

  #note(chunk: Buffer): void {
    for (let index = Math.max(0, chunk.length - 4); index < chunk.length; index++) this.#noteByte(chunk[index] ?? 0)
  }

  #noteByte(byte: number): void {
    this.#tail = (this.#tail << 8) | byte
  }

  #isWithinLineEnd(next: number | undefined): boolean {
    return (this.#tail & 0xff) === CR && next === LF
  }

  /** Whether the last line is empty: two line ends in a row, each LF, CR or CRLF. */
  #isBetweenEvents(): boolean {
    const last = this.#tail & 0xff
    const second = (this.#tail >> 8) & 0xff
    const third = (this.#tail >> 16) & 0xff
    const isEnd = (byte: number): boolean => byte === LF || byte === CR
    if (!isEnd(last)) return false
    return last === LF && second === CR ? isEnd(third) : isEnd(second)
  }
}
