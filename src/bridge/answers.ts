import type { Readable } from 'node:stream'
import { isEventStream } from '../http/index.ts'
import type { EndpointAnswer } from '../core/index.ts'
import { discard } from './channel.ts'
import {
  type EventReader,
  OversizedEvent,
  type ServerEvent,
  type Malformed,
  type Message,
  parseMessages,
} from '../mcp/index.ts'
import { WayError } from './way-error.ts'

/** How an answer is read. */
export interface Reading {
  /** Bytes of one message. */
  readonly maxBytes: number
  /** Waited for before more is taken, so that nothing piles up while the client does not read. */
  readonly ready: () => Promise<void>
}

/** How long a server may take to end a stream after the answer was in it, in milliseconds. */
const LINGER_MS = 1000

const contentTypeOf = ({ headers }: Pick<EndpointAnswer, 'headers'>): string =>
  [headers['content-type'] ?? ''].flat()[0] ?? ''

/** True for an answer that is an event stream. */
export const isStream = (answer: Pick<EndpointAnswer, 'headers'>): boolean => isEventStream(contentTypeOf(answer))

/** True for an answer that is JSON. */
export const isJson = (answer: Pick<EndpointAnswer, 'headers'>): boolean =>
  /^application\/(?:[\w.+-]+\+)?json *(?:;|$)/i.test(contentTypeOf(answer))

/** The messages of an event stream as they come; `events` remembers where to resume. Throws what the connection throws. */
export async function* streamMessages(
  body: Readable,
  events: EventReader,
  { ready }: Reading,
): AsyncGenerator<Message | Malformed> {
  let isOver = false
  try {
    for await (const chunk of body.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      for (const { type, data } of eventsIn(chunk, events)) {
        await ready()
        if (type === 'message') yield* parseMessages(data)
      }
      await ready()
    }
    isOver = true
  } finally {
    if (!isOver) endSoon(body)
  }
}

function eventsIn(chunk: Buffer, events: EventReader): ServerEvent[] {
  try {
    return events.push(chunk)
  } catch (error) {
    if (!(error instanceof OversizedEvent)) throw error
    throw new WayError('bad_answer', 'sent an event that is too large')
  }
}

/** The messages of a JSON answer. Throws `WayError` bad_answer for anything else, and what the connection throws. */
export async function jsonMessages(answer: EndpointAnswer, reading: Reading): Promise<readonly Message[]> {
  const type = contentTypeOf(answer)
  if (!isJson(answer)) {
    endSoon(answer.body)
    throw new WayError(
      'bad_answer',
      type === '' ? 'answered without a message' : 'answered with something else than JSON',
    )
  }
  const messages = parseMessages(await wholeBody(answer.body, reading))
  const bad = messages.find((message) => message.kind === 'malformed')
  if (bad !== undefined) throw new WayError('bad_answer', `gave an answer that is ${bad.why}`)
  return messages.filter((message) => message.kind !== 'malformed')
}

/** A body that is read whole. Throws `WayError` bad_answer when it is too large. */
export async function wholeBody(body: Readable, { maxBytes, ready }: Reading): Promise<Buffer> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of body as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > maxBytes) throw new WayError('bad_answer', 'gave an answer that is too large')
    chunks.push(chunk)
    await ready()
  }
  return Buffer.concat(chunks, length)
}

/** Nobody wants the rest: a little of it is read, so that the connection can be used again. */
export function endSoon(body: Readable): void {
  if (body.destroyed) return
  discard(body)
  const timer = setTimeout(() => body.destroy(), LINGER_MS)
  timer.unref()
  body.once('close', () => clearTimeout(timer))
}
