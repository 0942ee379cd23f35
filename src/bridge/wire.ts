import type { EndpointAnswer, Log } from '../core/index.ts'
import { discardRest, isStream, jsonMessages, type Reading, streamMessages } from './answers.ts'
import type { Channel } from './channel.ts'
import { EventReader, type Malformed, type Message, type Request } from '../mcp/index.ts'
import { readRefusal, type Refusal } from './refusal.ts'
import { Session } from './session.ts'
import { ReplayedRequests } from './replayed-requests.ts'
import { BridgeError } from './bridge-error.ts'

/** Headers of every POST (MCP, streamable HTTP requires both types). */
const POST_HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
/** Time for the server to accept a notification or start a session, in milliseconds. */
const NOTICE_MS = 30_000
const HANDSHAKE_MS = 60_000

const INITIALIZED = Buffer.from('{"jsonrpc":"2.0","method":"notifications/initialized"}')

export interface WireOptions {
  readonly channel: Channel
  readonly log: Log
  readonly reading: Reading
  /** Called when a new session replaces a lost one. */
  readonly onRenewed: () => void
}

/** Sends to the server, within the session. */
export class Wire {
  readonly session = new Session()
  readonly replayed = new ReplayedRequests()
  readonly reading: Reading
  /** Number of the session started because its predecessor's stream was lost. */
  beganForStream: number | undefined
  readonly #channel: Channel
  readonly #log: Log
  readonly #onRenewed: () => void
  #renewing: Promise<void> | undefined

  constructor({ channel, log, reading, onRenewed }: WireOptions) {
    this.#channel = channel
    this.#log = log
    this.reading = reading
    this.#onRenewed = onRenewed
  }

  post(body: Buffer, headers: Record<string, string>, signal: AbortSignal): Promise<EndpointAnswer> {
    return this.#channel.send({ method: 'POST', headers: { ...POST_HEADERS, ...headers }, body, signal })
  }

  /** Opens an event stream of this session, after `lastEventId`. */
  listen(lastEventId: string | undefined, signal: AbortSignal): Promise<EndpointAnswer> {
    const resume = lastEventId === undefined ? {} : { 'last-event-id': headerSafe(lastEventId) }
    const headers = { accept: 'text/event-stream', ...this.session.headers(), ...resume }
    return this.#channel.send({ method: 'GET', headers, signal })
  }

  /** Sends a message without a response. Throws `BridgeError` if the server rejects it. */
  async notify(body: Buffer, headers: Record<string, string>, signal?: AbortSignal): Promise<void> {
    const deadline = AbortSignal.timeout(NOTICE_MS)
    const ends = signal === undefined ? deadline : AbortSignal.any([signal, deadline])
    const answer = await this.post(body, headers, ends)
    discardRest(answer.body)
    if (answer.status >= 300) throw new BridgeError('endpoint_refused', `returned ${answer.status}`)
  }

  /** Replaces session `lost`, once for concurrent requests. Throws `BridgeError` session_lost if that fails. */
  async renew(lost: number): Promise<void> {
    if (this.session.number !== lost) return
    this.#renewing ??= this.#renew().finally(() => (this.#renewing = undefined))
    await this.#renewing
  }

  /** Resolves when no session is being started. */
  async settled(): Promise<void> {
    // The caller of `renew` gets the error.
    await this.#renewing?.catch(() => undefined)
  }

  /** Ends the session at the server (MCP 2025-11-25, session management), ignoring errors. */
  async end(limitMs: number): Promise<void> {
    const { current } = this.session
    const headers = this.session.headers()
    this.session.end()
    if (current?.id === undefined) return
    try {
      const signal = AbortSignal.timeout(limitMs)
      discardRest((await this.#channel.send({ method: 'DELETE', headers, signal })).body)
    } catch {
      this.#log.debug({}, 'session not ended at the server')
    }
  }

  async #renew(): Promise<void> {
    const { current } = this.session
    if (current === undefined) throw new BridgeError('session_lost', 'lost the session')
    const { handshake } = current
    const answer = await this.post(handshake.bytes, {}, AbortSignal.timeout(HANDSHAKE_MS))
    const result = answer.status < 300 ? await this.#resultOf(answer, handshake) : undefined
    if (result === undefined)
      throw new BridgeError('session_lost', `lost the session and did not start a new one (${answer.status})`)
    this.session.establish(handshake, answer, result, true)
    await this.notify(INITIALIZED, this.session.headers())
    for (const { bytes } of this.replayed.list())
      discardRest((await this.post(bytes, this.session.headers(), AbortSignal.timeout(NOTICE_MS))).body)
    this.#log.warn({}, 'session lost by the server, new session started')
    this.#onRenewed()
  }

  async #resultOf(answer: EndpointAnswer, { id }: Request): Promise<unknown> {
    for await (const message of this.messages(answer, new EventReader(this.reading.maxBytes)))
      if (message.kind === 'response' && message.id === id) return message.result
    return undefined
  }

  /** The messages of a JSON or stream response. */
  async *messages(answer: EndpointAnswer, events: EventReader): AsyncGenerator<Message | Malformed> {
    if (isStream(answer)) yield* streamMessages(answer.body, events, this.reading)
    else yield* await jsonMessages(answer, this.reading)
  }

  /** Reads an unsuccessful response. */
  refusalOf(answer: EndpointAnswer): Promise<Refusal> {
    return readRefusal(answer, (text) => this.#channel.masked(text))
  }
}

/** An event ID that is not a valid header value; such a stream cannot be resumed. */
const headerSafe = (text: string): string => (/^[\x20-\x7e]+$/.test(text) ? text : '')
