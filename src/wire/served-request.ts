import type { IncomingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import type { ClientRequest } from '../core/index.ts'
import type { ReceivedHead } from './received-head.ts'

const NOTHING = Buffer.alloc(0)
/** Read-ahead of a body; a single piece may be larger. */
const OPTIONS = { highWaterMark: 16 * 1024 }

/** A received request. Its body is read only on demand. */
export class ServedRequest extends Readable implements ClientRequest {
  readonly method: string
  readonly url: string
  readonly httpVersion: '1.0' | '1.1'
  readonly expects: ReceivedHead['expects']
  readonly isUpgrade: boolean
  readonly headers: IncomingHttpHeaders
  readonly rawHeaders: string[]
  socket: Socket
  complete = false
  readonly #onWanted: () => void
  /** Whether the body was requested. */
  #isWanted = false
  /** The first piece of the body, until it is requested or another one arrives. */
  #first: Buffer | undefined = undefined
  #isSplit = false
  #isDumped = false

  /**
   * `isUpgrade`: another protocol follows instead of a body. `onWanted` is called when more of the body is requested.
   */
  constructor(head: ReceivedHead, isUpgrade: boolean, socket: Socket, onWanted: () => void) {
    super(OPTIONS)
    this.method = head.method
    this.url = head.target
    this.httpVersion = head.isOld ? '1.0' : '1.1'
    this.expects = head.expects
    this.isUpgrade = isUpgrade
    // Each is one string, except `set-cookie`.
    this.headers = head.fields
    this.rawHeaders = head.lines
    this.socket = socket
    this.#onWanted = onWanted
  }

  get expectsContinue(): boolean {
    return this.expects === 'continue'
  }

  get headersDistinct(): NodeJS.Dict<string[]> {
    const values: NodeJS.Dict<string[]> = Object.create(null) as NodeJS.Dict<string[]>
    for (let index = 0; index < this.rawHeaders.length; index += 2) {
      const name = (this.rawHeaders[index] ?? '').toLowerCase()
      ;(values[name] ??= []).push(this.rawHeaders[index + 1] ?? '')
    }
    return values
  }

  takeWhole(): Buffer | undefined {
    if (!this.complete || this.#isWanted || this.#isSplit || this.destroyed) return undefined
    const whole = this.#first ?? NOTHING
    this.#first = undefined
    return whole
  }

  override _read(): void {
    this.#isWanted = true
    this.#release()
    if (this.complete) this.push(null)
    else this.#onWanted()
  }

  /** Like Node: a disconnected client is an error only for listeners of errors. */
  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    process.nextTick(() => callback(this.listenerCount('error') > 0 ? error : null))
  }

  /** Adds a piece of the body; false: pause. */
  receive(data: Buffer): boolean {
    if (this.#isDumped || this.destroyed) return true
    if (!this.#isWanted && !this.#isSplit && this.#first === undefined) {
      this.#first = data
      return true
    }
    this.#isSplit = true
    this.#release()
    return this.push(data)
  }

  /** The body is complete. */
  receiveEnd(): void {
    this.complete = true
    if (this.#isWanted || this.destroyed) this.push(null)
  }

  /** After the response, discards the rest of a body without a reader. */
  dump(): void {
    if (this.readableFlowing !== null && !this.destroyed) return
    this.#isDumped = true
    this.#first = undefined
    this.removeAllListeners('data')
    this.resume()
    this.#onWanted()
  }

  #release(): void {
    const first = this.#first
    if (first === undefined) return
    this.#first = undefined
    this.push(first)
  }
}
