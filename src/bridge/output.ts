import { finished, type Writable } from 'node:stream'

const NEWLINE = Buffer.from('\n')

/** The client's side of the bridge: messages, a line each, and nothing else. */
export class Output {
  readonly #stream: Writable
  #drained: PromiseWithResolvers<void> | undefined
  #isGone = false
  /** Resolves when nobody reads any more. */
  readonly gone: Promise<void>

  constructor(stream: Writable) {
    this.#stream = stream
    this.gone = new Promise((resolve) => {
      // An error is the same as an end: there is nobody to tell.
      finished(stream, { readable: false }, () => {
        this.#isGone = true
        this.#drained?.resolve()
        resolve()
      })
    })
    stream.on('drain', () => {
      this.#drained?.resolve()
      this.#drained = undefined
    })
  }

  /** One message. Lines stay whole and in the order of these calls. */
  write(line: Buffer): void {
    if (this.#isGone) return
    this.#stream.cork()
    this.#stream.write(line)
    const hasRoom = this.#stream.write(NEWLINE)
    this.#stream.uncork()
    if (!hasRoom && !this.#isGone) this.#drained ??= Promise.withResolvers<void>()
  }

  /** Resolves as soon as the client reads again: whoever has more for it waits here before taking more. */
  ready(): Promise<void> {
    return this.#drained?.promise ?? Promise.resolve()
  }

  /** Waits until the client has taken everything, and `limitMs` at most. */
  async flushed(limitMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, limitMs)
    this.#stream.write('', () => resolve())
    await Promise.race([promise, this.gone])
    clearTimeout(timer)
  }
}
