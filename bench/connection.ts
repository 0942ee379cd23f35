import { connect, type Socket } from 'node:net'

const HEAD_END = Buffer.from('\r\n\r\n')
const LENGTH = /\r\ncontent-length: *(\d+)/i

/**
 * A keep-alive connection that sends prepared bytes and counts the answers, as cheaply as can be: the load must not
 * come to its limit before what is measured does. Understands answers with a length only.
 */
export class Connection {
  readonly #socket: Socket
  #onAnswer: ((failure: Error | undefined) => void) | undefined
  #head: Buffer = Buffer.alloc(0)
  #left = -1

  constructor(socket: Socket) {
    this.#socket = socket
    socket.on('data', (chunk: Buffer) => this.#read(chunk))
    socket.on('error', (error) => this.#settle(error))
    socket.on('close', () => this.#settle(new Error('the connection was closed')))
  }

  /** Connects and settles when the connection stands. */
  static open(url: URL): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: url.hostname, port: Number(url.port), noDelay: true })
      socket.once('error', reject).once('connect', () => resolve(new Connection(socket.off('error', reject))))
    })
  }

  exchange(request: Buffer, done: (failure: Error | undefined) => void): void {
    this.#onAnswer = done
    this.#socket.write(request)
  }

  close(): void {
    this.#onAnswer = undefined
    this.#socket.destroy()
  }

  #read(chunk: Buffer): void {
    if (this.#left < 0) {
      const bytes = this.#head.length === 0 ? chunk : Buffer.concat([this.#head, chunk])
      const end = bytes.indexOf(HEAD_END)
      if (end < 0) {
        this.#head = bytes
        return
      }
      const head = bytes.toString('latin1', 0, end)
      const length = LENGTH.exec(head)?.[1]
      if (!head.startsWith('HTTP/1.1 200') || length === undefined) {
        return this.#settle(new Error(`unexpected answer: ${head.slice(0, 200)}`))
      }
      this.#head = Buffer.alloc(0)
      this.#left = Number(length) - (bytes.length - end - 4)
    } else this.#left -= chunk.length
    if (this.#left > 0) return
    this.#left = -1
    this.#settle(undefined)
  }

  #settle(failure: Error | undefined): void {
    const done = this.#onAnswer
    this.#onAnswer = undefined
    done?.(failure)
  }
}
