import type { ClientResponse } from '../core/index.ts'

const LF = 0x0a
const CR = 0x0d
const COMMENT = Buffer.from(':\n\n')

/**
 * Writes an SSE comment after `intervalMs` of silence, so that intermediaries keep the stream open. Only between
 * events: within a line, a comment would become part of it (HTML standard, §9.2.6).
 */
export class StreamKeepAlive {
  readonly #response: ClientResponse
  readonly #timer: NodeJS.Timeout
  // The last four written bytes; a new stream is at a boundary.
  #tail = (LF << 8) | LF

  constructor(response: ClientResponse, intervalMs: number) {
    this.#response = response
    this.#timer = setInterval(() => this.#beat(), intervalMs)
  }

  /** Called with every chunk after it was written. */
  note(chunk: Buffer): void {
    this.#timer.refresh()
    for (let index = Math.max(0, chunk.length - 4); index < chunk.length; index++) {
      this.#tail = (this.#tail << 8) | (chunk[index] ?? 0)
    }
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #beat(): void {
    // A blocked client needs no comment.
    if (this.#isBetweenEvents() && !this.#response.writableNeedDrain) this.#response.write(COMMENT)
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
