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
import { BridgeError } from './bridge-error.ts'

/** Limits for reading a response. */
export interface Reading {
  /** Maximum bytes of one message. */
  readonly maxBytes: number
  /** Awaited before reading more: backpressure of the client. */
  readonly ready: () => Promise<void>
}

/** Time for a server to end a stream after the response, in milliseconds. */
const LINGER_MS = 1000

const contentTypeOf = ({ headers }: Pick<EndpointAnswer, 'headers'>): string =>
  [headers['content-type'] ?? ''].flat()[0] ?? ''

/** Whether the response is an event stream. */
export const isStream = (answer: Pick<EndpointAnswer, 'headers'>): boolean => isEventStream(contentTypeOf(answer))

/** Whether the response is JSON. */
export const isJson = (answer: Pick<EndpointAnswer, 'headers'>): boolean =>
  /^application\/(?:[\w.+-]+\+)?json *(?:;|$)/i.test(contentTypeOf(answer))

/**
 * Yields the messages of an event stream as they arrive; `events` records where to resume. Throws connection errors.
 */
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
    if (!isOver) discardRest(body)
  }
}

function eventsIn(chunk: Buffer, events: EventReader): ServerEvent[] {
  try {
    return events.push(chunk)
  } catch (error) {
    if (!(error instanceof OversizedEvent)) throw error
    throw new BridgeError('bad_answer', 'sent an event above the size limit')
  }
}

/**
 * Returns the messages of a JSON response. Throws `BridgeError` bad_answer for other content, and connection errors.
 */
export async function jsonMessages(answer: EndpointAnswer, reading: Reading): Promise<readonly Message[]> {
  const type = contentTypeOf(answer)
  if (!isJson(answer)) {
    discardRest(answer.body)
    throw new BridgeError('bad_answer', type === '' ? 'returned no message' : 'returned a content type other than JSON')
  }
  const messages = parseMessages(await wholeBody(answer.body, reading))
  const bad = messages.find((message) => message.kind === 'malformed')
  if (bad !== undefined) throw new BridgeError('bad_answer', `returned a response that is ${bad.why}`)
  return messages.filter((message) => message.kind !== 'malformed')
}

/** Reads a whole body. Throws `BridgeError` bad_answer if it is too large. */
export async function wholeBody(body: Readable, { maxBytes, ready }: Reading): Promise<Buffer> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of body as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > maxBytes) throw new BridgeError('bad_answer', 'returned a response above the size limit')
    chunks.push(chunk)
    await ready()
  }
  return Buffer.concat(chunks, length)
}

/** Discards the rest of a body; reads a little of it, so that the connection can be reused. */
export function discardRest(body: Readable): void {
  if (body.destroyed) return
  discard(body)
  const timer = setTimeout(() => body.destroy(), LINGER_MS)
  timer.unref()
  body.once('close', () => clearTimeout(timer))
}
