import { type IncomingMessage, request } from 'node:http'
import { duplexPair } from 'node:stream'
import { answer, mutated } from './answers.ts'
import { Chance } from './random.ts'
import { type ReadAnswer, readAnswer } from './read-answer.ts'

/** The result of Node's client for the same bytes. */
interface NodeAnswer {
  readonly status: number
  readonly fields: readonly string[]
  readonly body: Buffer
}

export interface Compared {
  readonly whole: number
  readonly refused: number
  readonly cut: number
  /** Answers that were taken and that Node's strict parser does not take for the same; empty where all is well. */
  readonly differences: readonly string[]
}

/**
 * Compares random answers, mutated and cut at random places: whatever is taken here, Node's strict parser takes for the same
 * status, header lines and body, from exactly the same bytes.
 */
export async function compareAnswers(seed: number, count: number): Promise<Compared> {
  const chance = new Chance(seed)
  const seen = { whole: 0, refused: 0, cut: 0 }
  const differences: string[] = []
  for (let index = 0; index < count; index++) {
    const bytes = mutated(chance, answer(chance))
    const isHead = chance.below(8) === 0
    const ours = readAnswer(chance.cut(bytes), isHead)
    seen[ours.kind]++
    if (ours.kind !== 'whole') continue
    const theirs = await askNode(bytes.subarray(0, bytes.length - ours.rest), isHead, endsWithConnection(ours, isHead))
    const difference = differs(ours, theirs)
    if (difference !== undefined) differences.push(`${difference}: ${JSON.stringify(bytes.toString('latin1'))}`)
  }
  return { ...seen, differences }
}

type Whole = Extract<ReadAnswer, { kind: 'whole' }>

/** Nothing but the end of the connection ends it. */
function endsWithConnection({ head: { status, fields } }: Whole, isHead: boolean): boolean {
  const isBodiless = isHead || status === 204 || status === 304
  return !isBodiless && fields['content-length'] === undefined && fields['transfer-encoding'] === undefined
}

/** Bytes after a response: part of its body only if it is close-delimited. */
const BEHIND = Buffer.from('X')

function askNode(bytes: Buffer, isHead: boolean, endsWithConnection: boolean): Promise<NodeAnswer | Error> {
  return new Promise((resolve) => {
    const [client, server] = duplexPair()
    let answered: IncomingMessage | undefined
    const done = (result: NodeAnswer | Error): void => {
      resolve(result)
      server.destroy()
      asking.destroy()
    }
    const asking = request({
      method: isHead ? 'HEAD' : 'GET',
      insecureHTTPParser: false,
      // Of a socket the client asks no more than this stream has.
      createConnection: () => client,
    })
    asking.on('error', (error) => {
      // Bytes after a complete response may be rejected.
      if (answered?.complete !== true) done(error)
    })
    asking.on('response', (message) => {
      const body: Buffer[] = []
      answered = message
      message
        .on('data', (data: Buffer) => body.push(data))
        .on('end', () => {
          if (!message.complete) return done(new Error('torn'))
          done({ status: message.statusCode ?? 0, fields: message.rawHeaders, body: Buffer.concat(body) })
        })
        .on('error', done)
    })
    asking.end()
    server.resume()
    server.end(endsWithConnection ? bytes : Buffer.concat([bytes, BEHIND]))
  })
}

function differs(ours: Whole, theirs: NodeAnswer | Error): string | undefined {
  if (theirs instanceof Error) return `Node says ${theirs.message}`
  if (theirs.status !== ours.head.status) return `status ${theirs.status}`
  if (!theirs.body.equals(ours.body)) return 'another body'
  const fields = new Map<string, string[]>()
  for (let index = 0; index + 1 < theirs.fields.length; index += 2) {
    const name = (theirs.fields[index] ?? '').toLowerCase()
    fields.set(name, [...(fields.get(name) ?? []), theirs.fields[index + 1] ?? ''])
  }
  const { fields: read } = ours.head
  const names = Object.keys(read)
  const isSame =
    names.length === fields.size && names.every((name) => isEqual([read[name] ?? []].flat(), fields.get(name)))
  return isSame ? undefined : 'other header lines'
}

const isEqual = (one: readonly string[], other: readonly string[] | undefined): boolean =>
  one.length === other?.length && one.every((line, index) => line === other[index])
