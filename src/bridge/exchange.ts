import type { EndpointAnswer } from '../core/index.ts'
import { endSoon, isStream } from './answers.ts'
import { EventReader, statelessHeaders, type ToolParameters, isObject, type Message } from '../mcp/index.ts'
import type { Flight } from './flights.ts'
import { learnTools } from './tool-list.ts'
import { remedyOf, WayError } from './way-error.ts'
import type { Wire } from './wire.ts'

/** The headers of a request do not say what its body says (MCP 2026-07-28). */
const HEADER_MISMATCH = -32_020
/** Tries to resume a stream without anything new in it. */
const MAX_RESUMES = 5
const FIRST_PAUSE_MS = 1000
const MAX_PAUSE_MS = 30_000
/**
 * Between a notification and the answer behind it, in milliseconds. Clients of the official TypeScript SDK forget who wants
 * progress before they have passed it on when both are read from the pipe in one piece.
 */
const NOTICE_GAP_MS = 25

export interface ExchangeDeps {
  readonly wire: Wire
  readonly tools: ToolParameters
  /** Waits, and ends early with the signal. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>
  /** Takes what came in the answer to `flight`. */
  readonly deliver: (message: Message, flight: Flight, answer: EndpointAnswer) => void
}

/**
 * Sends one request of the client and delivers what comes of it, until its answer is among that: over a lost session, and
 * over streams that end early (MCP 2025-11-25, resumability). Throws what `wayResponse` makes an answer of.
 */
export async function exchange(flight: Flight, deps: ExchangeDeps): Promise<void> {
  const { wire } = deps
  const { number } = wire.session
  let answer = await send(flight, deps)
  if (isSuccess(answer)) return receive(flight, answer, deps)
  let said = await wire.refusalOf(answer)
  if (await mended(flight, answer, said, number, deps)) {
    answer = await send(flight, deps)
    if (isSuccess(answer)) return receive(flight, answer, deps)
    said = await wire.refusalOf(answer)
  }
  return refuse(flight, answer, said, deps)
}

const isSuccess = ({ status }: EndpointAnswer): boolean => status >= 200 && status < 300

/** True when what the server refused it for is no more: the request was not carried out, and can go once more. */
async function mended(
  { request, statelessVersion: version, signal }: Flight,
  answer: EndpointAnswer,
  said: readonly Message[],
  session: number,
  { wire, tools }: ExchangeDeps,
): Promise<boolean> {
  if (version === undefined) {
    if (wire.session.current?.id === undefined || !isLost(answer, said)) return false
    await wire.renew(session)
    return true
  }
  if (request.method !== 'tools/call' || !said.some(isHeaderMismatch)) return false
  await learnTools({ request, signal }, version, wire, tools)
  return true
}

const isHeaderMismatch = (message: Message): boolean =>
  message.kind === 'response' && isObject(message.error) && message.error['code'] === HEADER_MISMATCH

function send(flight: Flight, { wire, tools }: ExchangeDeps): Promise<EndpointAnswer> {
  const { request, statelessVersion: version } = flight
  const { method, params } = request
  const headers =
    version === undefined
      ? method === 'initialize'
        ? {}
        : wire.session.headers()
      : { ...statelessHeaders(version, method, params), ...(method === 'tools/call' ? tools.headers(params) : {}) }
  return wire.post(request.bytes, headers, flight.signal)
}

/** 404 is how a server says it (MCP, session management); some say 400 and that it is the session. */
function isLost({ status }: EndpointAnswer, refusals: readonly Message[]): boolean {
  if (status === 404) return true
  const [said] = refusals
  return status === 400 && said?.kind === 'response' && /\bsession\b/i.test(String(Object(said.error)['message'] ?? ''))
}

async function receive(flight: Flight, first: EndpointAnswer, deps: ExchangeDeps): Promise<void> {
  const { wire, deliver } = deps
  const events = new EventReader(wire.reading.maxBytes)
  const { number } = wire.session
  let answer = first
  let noticeAtMs = Number.NEGATIVE_INFINITY
  for (let resumes = 0; ; resumes++) {
    let trouble: unknown
    try {
      for await (const message of wire.messages(answer, events)) {
        resumes = 0
        if (message.kind === 'notification') noticeAtMs = performance.now()
        const gapMs = noticeAtMs + NOTICE_GAP_MS - performance.now()
        if (message.kind === 'response' && gapMs > 0) await deps.pause(gapMs, flight.signal)
        if (message.kind === 'malformed')
          trouble = new WayError('bad_answer', `sent an event that is ${message.why}, and no answer`)
        else deliver(message, flight, answer)
        if (flight.isDone) return
      }
    } catch (error) {
      flight.signal.throwIfAborted()
      if (error instanceof WayError) throw error
      trouble = error
    }
    const { lastEventId } = events
    const mayResume = lastEventId !== undefined && flight.statelessVersion === undefined && isStream(first)
    if (!mayResume || resumes >= MAX_RESUMES) throw lost(trouble, isStream(first))
    await deps.pause(events.retryMs ?? Math.min(FIRST_PAUSE_MS * 2 ** resumes, MAX_PAUSE_MS), flight.signal)
    if (wire.session.number !== number) throw new WayError('session_lost', 'lost the session while it was at work')
    events.restart()
    answer = await resumed(lastEventId, flight, deps, answer)
  }
}

/** The same stream again; the answer that ended when the server can't be reached yet. */
async function resumed(
  lastEventId: string,
  flight: Flight,
  { wire }: ExchangeDeps,
  ended: EndpointAnswer,
): Promise<EndpointAnswer> {
  const { number } = wire.session
  let answer
  try {
    answer = await wire.listen(lastEventId, flight.signal)
  } catch (error) {
    flight.signal.throwIfAborted()
    if (!(error instanceof Error && error.name === 'OutboundError')) throw error
    return ended
  }
  if (answer.status === 200 && isStream(answer)) return answer
  endSoon(answer.body)
  if (answer.status === 404) {
    await wire.renew(number)
    throw new WayError('session_lost', 'lost the session while it was at work')
  }
  throw new WayError('stream_lost', `ended its answer early, and does not resume it (${answer.status})`)
}

function lost(trouble: unknown, wasStream: boolean): WayError {
  if (trouble instanceof WayError) return trouble
  const said = wasStream ? 'ended its stream before the answer was in it' : 'broke off its answer'
  return new WayError('stream_lost', said, { cause: trouble })
}

/** An answer that is no success: what it says goes to the client as the answer to this request, with what to do about it. */
function refuse(flight: Flight, answer: EndpointAnswer, said: readonly Message[], { deliver }: ExchangeDeps): void {
  const { status, headers } = answer
  const { id } = flight.request
  for (const message of said) {
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
  const retryAfter = [headers['retry-after'] ?? []].flat()[0]
  const data = {
    status,
    ...(retryAfter !== undefined && /^\d{1,9}$/.test(retryAfter) ? { retryAfterSeconds: Number(retryAfter) } : {}),
  }
  if (status === 401) throw new WayError('invalid_token', 'does not accept the access token', { data })
  throw new WayError('endpoint_refused', `answered ${status}`, { data })
}
