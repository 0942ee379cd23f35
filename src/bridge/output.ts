import { finished, type Writable } from 'node:stream'

const NEWLINE = Buffer.from('\n')

/** The client's side of the bridge: one message per line. */
export class Output {
  readonly #stream: Writable
  #drained: PromiseWithResolvers<void> | undefined
  #isGone = false
  /** Resolves when the output closes. */
  readonly gone: Promise<void>

  constructor(stream: Writable) {
    this.#stream = stream
    this.gone = new Promise((resolve) => {
      // An error is treated as a close.
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

  /** Writes one message. Lines stay whole and in call order. */
  write(line: Buffer): void {
    if (this.#isGone) return
    this.#stream.cork()
    this.#stream.write(line)
    const isWritable = this.#stream.write(NEWLINE)
    this.#stream.uncork()
    if (!isWritable && !this.#isGone) this.#drained ??= Promise.withResolvers<void>()
  }

  /** Resolves when the client reads again: backpressure. */
  ready(): Promise<void> {
    return this.#drained?.promise ?? Promise.resolve()
  }

  /** Waits until the output is drained, at most `limitMs`. */
  async flushed(limitMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, limitMs)
    this.#stream.write('', () => resolve())
    await Promise.race([promise, this.gone])
    clearTimeout(timer)
  }
}
