import type { EndpointAnswer, Log } from '../core/index.ts'
import { endSoon, isStream, jsonMessages, type Reading, streamMessages } from './answers.ts'
import type { Channel } from './channel.ts'
import { EventReader, type Malformed, type Message, type Request } from '../mcp/index.ts'
import { readRefusal, type Refusal } from './refusal.ts'
import { Session } from './session.ts'
import { Standing } from './standing.ts'
import { WayError } from './way-error.ts'

/** Header lines of every POST (MCP, streamable HTTP: both types must be accepted). */
const POST_HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
/** How long the server may take to note what needs no answer, and to begin a session, in milliseconds. */
const NOTICE_MS = 30_000
const HANDSHAKE_MS = 60_000

const INITIALIZED = Buffer.from('{"jsonrpc":"2.0","method":"notifications/initialized"}')

export interface WireOptions {
  readonly channel: Channel
  readonly log: Log
  readonly reading: Reading
  /** Another session has taken the place of a lost one. */
  readonly onRenewed: () => void
}

/** What goes to the server, and the session that goes with it. */
export class Wire {
  readonly session = new Session()
  readonly standing = new Standing()
  readonly reading: Reading
  /** The number of the session that was begun because its stream was lost, until it has one. */
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

  /** An event stream of this session, from after `lastEventId`. */
  listen(lastEventId: string | undefined, signal: AbortSignal): Promise<EndpointAnswer> {
    const resume = lastEventId === undefined ? {} : { 'last-event-id': headerSafe(lastEventId) }
    const headers = { accept: 'text/event-stream', ...this.session.headers(), ...resume }
    return this.#channel.send({ method: 'GET', headers, signal })
  }

  /** Sends what has no answer. Throws `WayError` when the server does not take it. */
  async notify(body: Buffer, headers: Record<string, string>, signal?: AbortSignal): Promise<void> {
    const deadline = AbortSignal.timeout(NOTICE_MS)
    const ends = signal === undefined ? deadline : AbortSignal.any([signal, deadline])
    const answer = await this.post(body, headers, ends)
    endSoon(answer.body)
    if (answer.status >= 300) throw new WayError('endpoint_refused', `answered ${answer.status}`)
  }

  /**
   * Begins another session in place of the one numbered `lost`, once for all that notice the loss. Throws `WayError`
   * session_lost when there can be none.
   */
  async renew(lost: number): Promise<void> {
    if (this.session.number !== lost) return
    this.#renewing ??= this.#renew().finally(() => (this.#renewing = undefined))
    await this.#renewing
  }

  /** Resolves when no session is being begun. */
  async settled(): Promise<void> {
    // Whoever began it hears of its failure.
    await this.#renewing?.catch(() => undefined)
  }

  /** Ends the session at the server (MCP 2025-11-25, session management); what it says about that does not matter. */
  async end(limitMs: number): Promise<void> {
    const { current } = this.session
    const headers = this.session.headers()
    this.session.end()
    if (current?.id === undefined) return
    try {
      const signal = AbortSignal.timeout(limitMs)
      endSoon((await this.#channel.send({ method: 'DELETE', headers, signal })).body)
    } catch {
      this.#log.debug({}, 'the session could not be ended at the server')
    }
  }

  async #renew(): Promise<void> {
    const { current } = this.session
    if (current === undefined) throw new WayError('session_lost', 'has lost the session')
    const { handshake } = current
    const answer = await this.post(handshake.bytes, {}, AbortSignal.timeout(HANDSHAKE_MS))
    const result = answer.status < 300 ? await this.#resultOf(answer, handshake) : undefined
    if (result === undefined)
      throw new WayError('session_lost', `has lost the session and began none (${answer.status})`)
    this.session.establish(handshake, answer, result, true)
    await this.notify(INITIALIZED, this.session.headers())
    for (const { bytes } of this.standing.list())
      endSoon((await this.post(bytes, this.session.headers(), AbortSignal.timeout(NOTICE_MS))).body)
    this.#log.warn({}, 'the server had lost the session; another one was begun')
    this.#onRenewed()
  }

  async #resultOf(answer: EndpointAnswer, { id }: Request): Promise<unknown> {
    for await (const message of this.messages(answer, new EventReader(this.reading.maxBytes)))
      if (message.kind === 'response' && message.id === id) return message.result
    return undefined
  }

  /** The messages of any answer. */
  async *messages(answer: EndpointAnswer, events: EventReader): AsyncGenerator<Message | Malformed> {
    if (isStream(answer)) yield* streamMessages(answer.body, events, this.reading)
    else yield* await jsonMessages(answer, this.reading)
  }

  /** What a refusal says. */
  refusalOf(answer: EndpointAnswer): Promise<Refusal> {
    return readRefusal(answer, (text) => this.#channel.masked(text))
  }
}

/** An event id may hold what a header may not; such a stream can't be resumed by it. */
const headerSafe = (text: string): string => (/^[\x20-\x7e]+$/.test(text) ? text : '')
