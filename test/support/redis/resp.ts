import { createServer, type Server, type Socket } from 'node:net'

/** A server that speaks Redis' protocol as a test wants it: a sentinel that lies, a master that is none. */
export interface RespServer {
  readonly port: number
  /** Every command that it was sent, words joined by spaces. */
  readonly commands: readonly string[]
  close(): Promise<void>
}

export type RespReply = string | number | null | readonly RespReply[]

/** `answer` gives a reply for the words of a command; undefined: says nothing at all. */
export async function startRespServer(
  answer: (words: readonly string[], port: number) => RespReply | undefined,
): Promise<RespServer> {
  const commands: string[] = []
  const sockets = new Set<Socket>()
  let port = 0
  const server: Server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket))
    let text = ''
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1')
      for (let parsed = parse(text); parsed !== undefined; parsed = parse(text)) {
        text = text.slice(parsed.length)
        commands.push(parsed.words.join(' '))
        const reply = answer(parsed.words, port)
        if (reply !== undefined) socket.write(encode(reply))
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('not listening')
  port = address.port
  return {
    port,
    commands,
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** A complete command at the start of `text`: `*2\r\n$4\r\nAUTH\r\n…`. */
function parse(text: string): { words: string[]; length: number } | undefined {
  const head = /^\*(\d+)\r\n/.exec(text)
  if (head === null) return undefined
  const words: string[] = []
  let at = head[0].length
  for (let index = 0; index < Number(head[1]); index += 1) {
    const size = /^\$(\d+)\r\n/.exec(text.slice(at))
    if (size === null) return undefined
    at += size[0].length
    const word = text.slice(at, at + Number(size[1]))
    at += Number(size[1]) + 2
    if (text.length < at) return undefined
    words.push(word)
  }
  return { words, length: at }
}

function encode(reply: RespReply): string {
  if (reply === null) return '$-1\r\n'
  if (typeof reply === 'number') return `:${reply}\r\n`
  if (typeof reply !== 'string') return `*${reply.length}\r\n${reply.map(encode).join('')}`
  return reply.startsWith('-') || reply.startsWith('+')
    ? `${reply}\r\n`
    : `$${Buffer.byteLength(reply)}\r\n${reply}\r\n`
}
