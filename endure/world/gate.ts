import { connect, createServer, type Socket } from 'node:net'
import { freePort } from '../../lab/free-port.ts'

/**
 * A gate's mode: forwards connections; refuses and cuts them; delays what comes; reads what it is sent and
 * gives nothing back; cuts in the middle of an answer; answers itself with nonsense.
 */
export const GATE_MODES = ['open', 'down', 'slow', 'silent', 'torn', 'wrong'] as const
export type GateMode = (typeof GATE_MODES)[number]

/** A stretch of network before a service, which can be broken. */
export interface Gate {
  readonly port: number
  readonly url: string
  /** Where what comes is sent to. */
  target: number
  readonly mode: GateMode
  /** How many open connections have lost bytes in it; they go when it opens again. */
  readonly lost: number
  /** Open connections are treated so as well. */
  set(mode: GateMode): void
  close(): Promise<void>
}

export interface GateOptions {
  /** The response in the mode `wrong`. Default: a head that no HTTP client may accept. */
  readonly rubbish?: string
  /** Default 3 s, within the deadlines of the proxy. */
  readonly slowMs?: number
  /** Changes what the service says, chunk by chunk. */
  readonly rewrite?: (chunk: Buffer) => Buffer
  readonly scheme?: 'http' | 'https'
}

const UNFIT = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 7\r\n\r\nhello'
/** An answer is cut after so many bytes at the latest. */
const MOST_TORN_BYTES = 600

/** Opens a gate on a free port of loopback. */
export async function openGate(options: GateOptions = {}): Promise<Gate> {
  const { rubbish = UNFIT, slowMs = 3_000, rewrite = (chunk) => chunk, scheme = 'http' } = options
  const port = await freePort()
  const pairs = new Set<Pair>()
  let mode: GateMode = 'open'
  const server = createServer((client) => {
    client.on('error', () => client.destroy())
    if (mode === 'down') {
      client.resetAndDestroy()
      return
    }
    if (mode === 'wrong') {
      client.once('data', () => client.end(rubbish))
      return
    }
    const pair = createPair(client, gate.target, { mode: () => mode, slowMs, rewrite })
    pairs.add(pair)
    client.once('close', () => pairs.delete(pair))
  })
  const gate: Gate = {
    port,
    url: `${scheme}://127.0.0.1:${port}`,
    target: 0,
    get mode() {
      return mode
    },
    get lost() {
      return [...pairs].filter(({ hasLost }) => hasLost).length
    },
    set(wanted) {
      mode = wanted
      // Kept connections would not notice otherwise, and bytes after lost ones are meaningless.
      for (const pair of pairs) if (wanted === 'down' || wanted === 'wrong' || pair.hasLost) pair.cut()
    },
    close: async () => {
      for (const pair of pairs) pair.cut()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })
  return gate
}

interface Pair {
  /** It has taken bytes that were never given on. */
  readonly hasLost: boolean
  cut(): void
}

interface PairOptions {
  readonly mode: () => GateMode
  readonly slowMs: number
  readonly rewrite: (chunk: Buffer) => Buffer
}

/** Both halves of a connection; each goes with the other, and neither reads faster than the other is read. */
function createPair(client: Socket, target: number, { mode, slowMs, rewrite }: PairOptions): Pair {
  const service = connect(target, '127.0.0.1')
  /** Whether the next bytes of the service begin an answer, which is what a slow one waits with. */
  let isAsked = true
  let held: Promise<unknown> | undefined
  let hasLost = false

  client.on('data', (chunk: Buffer) => {
    if (mode() === 'silent') {
      hasLost = true
      return
    }
    isAsked = true
    pass(chunk, client, service)
  })
  client.on('end', () => service.end())
  service.on('data', (chunk: Buffer) => {
    const now = mode()
    if (now === 'silent') {
      hasLost = true
      return
    }
    if (now === 'torn') {
      // The bytes first, then the end: a reset would take them along.
      client.end(chunk.subarray(0, Math.min(MOST_TORN_BYTES, Math.floor(chunk.length / 2))))
      service.destroy()
      return
    }
    const send = (): void => pass(rewrite(chunk), service, client)
    const isLate = now === 'slow' && isAsked
    isAsked = false
    if (!isLate && held === undefined) {
      send()
      return
    }
    const mine = (held ?? Promise.resolve())
      .then(() => (isLate ? new Promise((resolve) => setTimeout(resolve, slowMs)) : undefined))
      .then(send)
    held = mine
    void mine.then(() => (held = held === mine ? undefined : held))
  })
  service.on('end', () => void (held ?? Promise.resolve()).then(() => client.end()))
  client.on('error', () => service.destroy()).on('close', () => service.destroy())
  service.on('error', () => client.destroy())
  return {
    get hasLost() {
      return hasLost
    },
    cut: () => {
      if (!client.destroyed) client.resetAndDestroy()
      service.destroy()
    },
  }
}

function pass(chunk: Buffer, from: Socket, to: Socket): void {
  if (to.destroyed || to.writableEnded || to.write(chunk)) return
  from.pause()
  to.once('drain', () => from.resume())
}
