import { createServer, type IncomingMessage } from 'node:http'
import { type Duplex, duplexPair } from 'node:stream'
import { mutated } from './answers.ts'
import { Chance } from './random.ts'
import { bytesOf, type ReadRequest, readRequests } from './read-requests.ts'
import { requests } from './requests-to-read.ts'

/** The result of Node's server for a request. */
interface NodeRequest {
  readonly message: IncomingMessage
  readonly body: Buffer
}

export interface ComparedRequests {
  /** Requests that were taken. */
  readonly whole: number
  /** Connections that became another protocol's, that were refused, and left in the middle of a request. */
  readonly upgraded: number
  readonly refused: number
  readonly open: number
  /** Requests that are refused although Node's strict parser takes them; none of them has to be. */
  readonly stricter: number
  /** Accepted requests that Node's strict parser reads differently; empty if there are none. */
  readonly differences: readonly string[]
}

/**
 * Compares the requests of random connections, mutated and cut at random places: whatever is taken here, Node's strict parser takes
 * for the same method, target, header lines and body, from exactly the same bytes.
 */
export async function compareRequests(
  seed: number,
  count: number,
  onStricter?: (bytes: Buffer) => void,
): Promise<ComparedRequests> {
  const chance = new Chance(seed)
  const seen = { whole: 0, upgraded: 0, refused: 0, open: 0, stricter: 0 }
  const differences: string[] = []
  for (let index = 0; index < count; index++) {
    const bytes = mutated(chance, requests(chance))
    const { whole: taken, end } = readRequests(chance.cut(bytes))
    // To Node the body of a request that asks for another protocol is that protocol's already; here it is none then.
    const asking = taken.findIndex(({ head }) => head.upgrade === undefined && asksForUpgrade(head))
    const whole = asking === -1 ? taken : taken.slice(0, asking)
    seen[end === 'upgrade' ? 'upgraded' : end === 'too-large' ? 'refused' : end]++
    seen.whole += whole.length
    if (end === 'refused' && asking === -1 && !(whole.at(-1)?.head.keeps === false)) {
      const theirs = await askNode(bytes, whole.length + 1)
      if (!(theirs instanceof Error) && theirs.length > whole.length) {
        seen.stricter++
        onStricter?.(bytes)
      }
    }
    if (whole.length === 0) continue
    // A different end would include appended bytes, or leave some of its own.
    const last = whole.at(-1)?.head
    const isLast = last?.keeps === false || last?.upgrade !== undefined
    const read = bytes.subarray(0, bytesOf(bytes, whole.length))
    const ours = isLast ? whole : [...whole, BEHIND]
    const theirs = await askNode(isLast ? read : Buffer.concat([read, BEHIND_BYTES]), ours.length)
    const difference = theirs instanceof Error ? `Node says ${theirs.message}` : differs(ours, theirs)
    if (difference !== undefined) differences.push(`${difference}: ${JSON.stringify(bytes.toString('latin1'))}`)
  }
  return { ...seen, differences }
}

const asksForUpgrade = ({ fields }: ReadRequest['head']): boolean =>
  fields['upgrade'] !== undefined && /(?:^|,)[\t ]*upgrade[\t ]*(?:,|$)/i.test(String(fields['connection']))

type Compared = Pick<ReadRequest, 'body'> & { readonly head: Pick<ReadRequest['head'], 'method' | 'target' | 'lines'> }

const BEHIND: Compared = { head: { method: 'GET', target: '/behind', lines: ['Host', 'h'] }, body: Buffer.alloc(0) }
const BEHIND_BYTES = Buffer.from('GET /behind HTTP/1.1\r\nHost: h\r\n\r\n')

const server = createServer({ insecureHTTPParser: false, requireHostHeader: false, maxHeaderSize: 64 * 1024 })
server.maxHeadersCount = 0

/** The first requests of these bytes, as many as `count`. */
function askNode(bytes: Buffer, count: number): Promise<readonly NodeRequest[] | Error> {
  return new Promise((resolve) => {
    const [client, served] = duplexPair()
    const taken: NodeRequest[] = []
    const done = (result: readonly NodeRequest[] | Error): void => {
      listeners.delete(served)
      resolve(result)
      client.destroy()
      served.destroy()
    }
    listeners.set(served, {
      onRequest: (message) => {
        const body: Buffer[] = []
        message
          .on('data', (data: Buffer) => body.push(data))
          .on('end', () => {
            if (taken.push({ message, body: Buffer.concat(body) }) === count) done(taken)
          })
      },
      onError: done,
    })
    server.emit('connection', served)
    client.resume().on('end', () => done(taken))
    client.end(bytes)
  })
}

interface Listener {
  onRequest(message: IncomingMessage): void
  onError(error: Error): void
}
const listeners = new WeakMap<object, Listener>()
server.on('request', (message, response) => {
  listeners.get(message.socket)?.onRequest(message)
  message.on('end', () => response.end())
})
server.on('clientError', (error, socket) => listeners.get(socket)?.onError(error))
for (const event of ['checkContinue', 'checkExpectation'])
  server.on(event, (message, response) => void server.emit('request', message, response))
for (const event of ['connect', 'upgrade'])
  server.on(event, (message: IncomingMessage, socket: Duplex) => {
    listeners.get(socket)?.onRequest(message)
    message.resume()
    socket.end()
  })

function differs(ours: readonly Compared[], theirs: readonly NodeRequest[]): string | undefined {
  if (ours.length !== theirs.length) return `${theirs.length} requests instead of ${ours.length}`
  for (const [index, { head, body }] of ours.entries()) {
    const other = theirs[index]
    if (other === undefined) return 'none'
    const { method, url, rawHeaders } = other.message
    if (method !== head.method || url !== head.target) return `${method} ${url}`
    if (!body.equals(other.body)) return 'another body'
    const isSame = rawHeaders.length === head.lines.length && rawHeaders.every((text, at) => text === head.lines[at])
    if (!isSame) return 'other header lines'
  }
  return undefined
}
