import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

// The floor: heads are read and written on bare sockets, without any policy. It understands requests with a length, and answers
// with a length or to the end of their connection (event streams); no proxy in this language that forwards can do less.
const HOP = new Set(['connection', 'keep-alive', 'upgrade', 'te', 'trailer', 'proxy-connection', 'host'])
const target = new URL(process.argv[2] ?? '')
const free: Half[] = []

/** A side of an exchange: reads messages with a head from its socket, and sends them on to the other side. */
class Half {
  readonly socket: Socket
  readonly #isClient: boolean
  #other: Half | undefined
  #held: Buffer | undefined
  /** Bytes of a body that have not come; -1 between messages. */
  #left = -1

  constructor(socket: Socket, isClient: boolean) {
    this.socket = socket.setNoDelay(true)
    this.#isClient = isClient
    const end = (): void => {
      socket.destroy()
      this.#other?.socket.destroy()
    }
    socket.on('data', (bytes: Buffer) => this.#read(bytes))
    socket.on('end', end).on('error', end).on('close', end)
    socket.on('drain', () => this.#other?.socket.resume())
  }

  #read(bytes: Buffer): void {
    if (this.#left >= 0) return this.#send(bytes, bytes.length)
    const all = this.#held === undefined ? bytes : Buffer.concat([this.#held, bytes])
    const end = all.indexOf('\r\n\r\n', 0, 'latin1')
    this.#held = end === -1 ? all : undefined
    if (end === -1) return
    if (this.#isClient) this.#other = this.#backend()
    const [head, length] = this.#headOf(all.toString('latin1', 0, end))
    this.#left = length
    const message = Buffer.allocUnsafe(head.length + all.length - end - 4)
    message.write(head, 0, 'latin1')
    all.copy(message, head.length, end + 4)
    this.#send(message, all.length - end - 4)
  }

  #send(bytes: Buffer, ofBody: number): void {
    const other = this.#other
    if (other?.socket.write(bytes) === false) this.socket.pause()
    this.#left -= ofBody
    if (this.#left > 0) return
    this.#left = -1
    if (this.#isClient) return
    this.#other = undefined
    if (other !== undefined) other.#other = undefined
    free.push(this)
  }

  #backend(): Half {
    let one = free.pop()
    while (one?.socket.destroyed === true) one = free.pop()
    one ??= new Half(connect(Number(target.port), target.hostname), false)
    one.#other = this
    return one
  }

  #headOf(text: string): [string, number] {
    const lines = text.split('\r\n')
    let head = `${lines[0] ?? ''}\r\n`
    let length = this.#isClient ? 0 : Infinity
    for (const line of lines.slice(1)) {
      const colon = line.indexOf(':')
      const name = line.slice(0, colon).toLowerCase()
      if (name === 'content-length') length = Number(line.slice(colon + 1))
      if (!HOP.has(name)) head += `${line}\r\n`
    }
    return [this.#isClient ? `${head}host: ${target.host}\r\n\r\n` : `${head}\r\n`, length]
  }
}

const server = createServer((socket) => void new Half(socket, true))
server.listen(Number(process.argv[3] ?? 0), '127.0.0.1', 4096, () =>
  process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
)
process.on('disconnect', () => process.exit())
