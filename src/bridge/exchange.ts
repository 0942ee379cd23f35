import { type EndpointAnswer, monotonicNow } from '../core/index.ts'
import { isStream } from './answers.ts'
import { EventReader, statelessHeaders, type ToolParameters, isObject, type Message } from '../mcp/index.ts'
import type { Flight } from './flights.ts'
import { reconnectMs } from './reconnect.ts'
import { isSessionLost, isTransient, type Refusal } from './refusal.ts'
import { learnTools } from './tool-list.ts'
import { remedyOf, BridgeError } from './bridge-error.ts'
import type { Wire } from './wire.ts'

/** JSON-RPC error: headers do not match the body (MCP 2026-07-28). */
const HEADER_MISMATCH = -32_020
/** Attempts to resume a stream without progress: no message, no event ID. */
const MAX_RESUMES = 5
/**
 * Delay between a notification and the response behind it, in milliseconds. Clients on the official TypeScript SDK
 * lose progress if both arrive in one chunk.
 */
const NOTICE_GAP_MS = 25

export interface ExchangeDeps {
  readonly wire: Wire
  readonly tools: ToolParameters
  /** Waits; ends early if the signal is aborted. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>
  /** Delivers a message of the response to `flight`. */
  readonly deliver: (message: Message, flight: Flight, answer: EndpointAnswer) => void
}

/**
 * Sends one client request and delivers messages until its response. Recovers from lost sessions and interrupted
 * streams (MCP 2025-11-25, resumability). Throws errors for `errorResponseFor`.
 */
export async function exchange(flight: Flight, deps: ExchangeDeps): Promise<void> {
  const { wire } = deps
  const { number } = wire.session
  let answer = await send(flight, deps)
  if (isSuccess(answer)) return receive(flight, answer, deps)
  let refusal = await wire.refusalOf(answer)
  if (await isRecovered(flight, refusal, number, deps)) {
    answer = await send(flight, deps)
    if (isSuccess(answer)) return receive(flight, answer, deps)
    refusal = await wire.refusalOf(answer)
  }
  return refuse(flight, answer, refusal, deps)
}

const isSuccess = ({ status }: EndpointAnswer): boolean => status >= 200 && status < 300

/** Whether the cause of a rejection is resolved: the request was not executed and can be sent again. */
async function isRecovered(
  { request, statelessVersion: version, signal }: Flight,
  refusal: Refusal,
  session: number,
  { wire, tools }: ExchangeDeps,
): Promise<boolean> {
  if (version === undefined) {
    if (wire.session.current?.id === undefined || !isSessionLost(refusal)) return false
    await wire.renew(session)
    return true
  }
  if (request.method !== 'tools/call' || !refusal.messages.some(isHeaderMismatch)) return false
  await learnTools({ request, signal }, version, wire, tools)
  return true
}

const isHeaderMismatch = (message: Message): boolean =>
  message.kind === 'response' && isObject(message.error) && message.error['code'] === HEADER_MISMATCH

function send(flight: Flight, { wire, tools }: ExchangeDeps): Promise<EndpointAnswer> {
  const { request, repeated = request.bytes, statelessVersion: version } = flight
  const { method, params } = request
  const headers =
    version === undefined
      ? method === 'initialize'
        ? {}
        : wire.session.headers()
      : { ...statelessHeaders(version, method, params), ...(method === 'tools/call' ? tools.headers(params) : {}) }
  return wire.post(repeated, headers, flight.signal)
}

async function receive(flight: Flight, first: EndpointAnswer, deps: ExchangeDeps): Promise<void> {
  const { wire, deliver } = deps
  const events = new EventReader(wire.reading.maxBytes)
  const { number } = wire.session
  let answer: EndpointAnswer | undefined = first
  let noticeAtMs = Number.NEGATIVE_INFINITY
  let retryAfterMs = 0
  for (let failures = 0; ; failures++) {
    const before = events.lastEventId
    let trouble: unknown
    try {
      for await (const message of answer === undefined ? [] : wire.messages(answer, events)) {
        failures = 0
        if (message.kind === 'notification') noticeAtMs = monotonicNow()
        const gapMs = noticeAtMs + NOTICE_GAP_MS - monotonicNow()
        if (message.kind === 'response' && gapMs > 0) await deps.pause(gapMs, flight.signal)
        if (message.kind === 'malformed')
          trouble = new BridgeError('bad_answer', `sent an event that is ${message.why}, and no response`)
        else deliver(message, flight, answer ?? first)
        if (flight.isDone || flight.prompt !== undefined) return
      }
    } catch (error) {
      flight.signal.throwIfAborted()
      if (error instanceof BridgeError) throw error
      trouble = error
    }
    const { lastEventId } = events
    // A server may close a stream after any event ID and expect polling (SEP-1699).
    if (lastEventId !== before) failures = 0
    const mayResume = lastEventId !== undefined && flight.statelessVersion === undefined && isStream(first)
    if (!mayResume || failures >= MAX_RESUMES) throw lost(trouble, isStream(first))
    await deps.pause(Math.max(retryAfterMs, reconnectMs(events, failures)), flight.signal)
    if (wire.session.number !== number) throw new BridgeError('session_lost', 'lost the session during the request')
    events.restart()
    ;({ answer, retryAfterMs } = await resumed(lastEventId, flight, deps))
  }
}

interface Resumed {
  /** Undefined if the server is unreachable or asks to retry. */
  readonly answer: EndpointAnswer | undefined
  readonly retryAfterMs: number
}
const LATER: Resumed = { answer: undefined, retryAfterMs: 0 }

/** Resumes the stream. */
async function resumed(lastEventId: string, flight: Flight, { wire }: ExchangeDeps): Promise<Resumed> {
  const { number } = wire.session
  let answer
  try {
    answer = await wire.listen(lastEventId, flight.signal)
  } catch (error) {
    flight.signal.throwIfAborted()
    if (!(error instanceof Error && error.name === 'OutboundError')) throw error
    return LATER
  }
  if (answer.status === 200 && isStream(answer)) return { answer, retryAfterMs: 0 }
  const refusal = await wire.refusalOf(answer)
  if (isTransient(refusal.status)) return { ...LATER, retryAfterMs: retryAfterMsOf(answer) }
  if (isSessionLost(refusal)) {
    await wire.renew(number)
    throw new BridgeError('session_lost', 'lost the session during the request')
  }
  throw new BridgeError('stream_lost', `ended its response early and does not resume it (${quoted(refusal)})`)
}

function lost(trouble: unknown, wasStream: boolean): BridgeError {
  if (trouble instanceof BridgeError) return trouble
  const problem = wasStream ? 'ended its stream before the response' : 'aborted its response'
  return new BridgeError('stream_lost', problem, { cause: trouble })
}

/** Delivers an unsuccessful response as an error of the request, with a remedy. */
function refuse(flight: Flight, answer: EndpointAnswer, refusal: Refusal, { deliver }: ExchangeDeps): void {
  const { status } = answer
  const { id } = flight.request
  for (const message of refusal.messages) {
    if (message.kind !== 'response' || message.error === undefined) continue
    if (message.id !== null && message.id !== id) continue
    const { code, message: text, data } = Object(message.error) as Record<string, unknown>
    if (typeof code !== 'number' || typeof text !== 'string') continue
    const known = (typeof data === 'object' && data !== null ? data : {}) as Record<string, unknown>
    const remedy = remedyOf(known['reason'])
    const error = { code, message: text, data: remedy === undefined ? data : { ...known, remedy } }
    deliver({ ...message, id, bytes: Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, error })) }, flight, answer)
    return
  }
  const retryAfterMs = retryAfterMsOf(answer)
  const data = { status, ...(retryAfterMs === 0 ? {} : { retryAfterSeconds: retryAfterMs / 1000 }) }
  if (status === 401)
    throw new BridgeError('invalid_token', `does not accept the access token${textIn(refusal)}`, { data })
  throw new BridgeError('endpoint_refused', `returned ${quoted(refusal)}`, { data })
}

const quoted = (refusal: Refusal): string => `${refusal.status}${textIn(refusal)}`
const textIn = ({ text }: Refusal): string => (text === '' ? '' : `: ${text}`)

/** Milliseconds of `Retry-After`; 0 if absent. */
function retryAfterMsOf({ headers }: EndpointAnswer): number {
  const value = [headers['retry-after'] ?? []].flat()[0]
  return value !== undefined && /^\d{1,9}$/.test(value) ? Number(value) * 1000 : 0
}
