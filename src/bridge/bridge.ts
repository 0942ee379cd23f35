import type { EndpointAnswer, EndpointCredentials, Log, McpEndpoint, Secret } from '../core/index.ts'
import { Channel } from './channel.ts'
import { exchange, type ExchangeDeps } from './exchange.ts'
import { Flight, Flights } from './flights.ts'
import {
  headerText,
  ToolParameters,
  errorResponse,
  INVALID_REQUEST,
  isBatch,
  isId,
  type Malformed,
  type Message,
  type Notification,
  parseMessages,
  REVISIONS,
  revisionOf,
  type Request,
  type Response,
  statelessVersionOf,
} from '../mcp/index.ts'
import { readLines } from './lines.ts'
import type { Output } from './output.ts'
import { followServer } from './server-stream.ts'
import { codeOf, reasonOf, BridgeError, errorResponseFor } from './bridge-error.ts'
import {
  declareUrls,
  type PageOpener,
  promptIn,
  repeated,
  textResponse,
  UrlElicitation,
  type UrlPrompt,
} from './url-elicitation.ts'
import { Wire } from './wire.ts'

export interface BridgeOptions {
  readonly endpoint: McpEndpoint
  readonly credentials: EndpointCredentials
  readonly input: AsyncIterable<Buffer>
  readonly output: Output
  readonly log: Log
  /** Name of the server in messages to the client. */
  readonly server: string
  /** Waits; rejects at once if the signal is aborted. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>
  /** Maximum bytes of one message in either direction. */
  readonly maxMessageBytes: number
  /** Opens pages that the server asks the user to open, for clients that can't; undefined: such clients get no links. */
  readonly opener?: PageOpener | undefined
  /** Further secrets in requests, masked in text of the server. */
  readonly secrets?: readonly Secret[]
}

/** Bytes of pending requests; above, no more input is read. */
const MAX_HELD_BYTES = 256 * 1024 * 1024
/** Time for a request before revision 2026-07-28 to handle its cancellation, in milliseconds. */
const CANCEL_GRACE_MS = 1000
const END_SESSION_MS = 900
/** The same at shutdown without hurry. */
const SLOW_END_MS = 3000
/** Minimum time for a slow client to read the last messages, in milliseconds. */
const FLUSH_MS = 500

const BATCHES = REVISIONS.find(({ hasBatches }) => hasBatches)?.date ?? ''

/** Bridges MCP between a client on standard input and output and an HTTP server. */
export class Bridge {
  readonly #options: BridgeOptions
  readonly #wire: Wire
  readonly #flights = new Flights()
  readonly #tools = new ToolParameters()
  readonly #deps: ExchangeDeps
  readonly #end = new AbortController()
  #heldBytes = 0
  #onRoom: (() => void) | undefined
  /** Messages that the server must accept before the next one is sent. */
  #order: Promise<void> = Promise.resolve()
  #handshake: Promise<void> = Promise.resolve()
  #statelessVersion: string | undefined
  readonly #elicitation: UrlElicitation | undefined
  /** The bridge declared URL elicitation in the handshake. */
  #isOnBehalf = false
  #follower: AbortController | undefined
  #isInitialized = false

  constructor(options: BridgeOptions) {
    this.#options = options
    const { endpoint, credentials, output, log, maxMessageBytes } = options
    this.#wire = new Wire({
      channel: new Channel(endpoint, credentials, options.secrets),
      log,
      reading: { maxBytes: maxMessageBytes, ready: () => output.ready() },
      onRenewed: () => {
        this.#elicitation?.completeAll()
        this.#follow()
      },
    })
    const { opener, pause } = options
    this.#elicitation = opener && new UrlElicitation({ opener, wire: this.#wire, log, pause, end: this.#end.signal })
    this.#deps = {
      wire: this.#wire,
      tools: this.#tools,
      pause: options.pause,
      deliver: (message, flight, answer) => this.#deliver(message, flight, answer),
    }
  }

  /** Forwards messages until the input ends. */
  async run(): Promise<void> {
    const { input, maxMessageBytes, log } = this.#options
    for await (const line of readLines(input, maxMessageBytes)) {
      if (line.kind === 'too_long') {
        log.error({ maxMessageBytes }, 'client message above the size limit')
        this.#say({ kind: 'malformed', code: INVALID_REQUEST, why: 'above the size limit', id: null })
        continue
      }
      if (line.bytes.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0d)) continue
      for (const message of this.#read(line.bytes)) this.#take(message)
      while (this.#heldBytes > MAX_HELD_BYTES) await new Promise<void>((resolve) => (this.#onRoom = resolve))
    }
  }

  /** Waits `graceMs` for requests in flight, then aborts them and ends the session. */
  async close(graceMs: number): Promise<void> {
    await this.#flights.quiet(graceMs)
    const left = this.#flights.all()
    for (const flight of left) {
      if (!flight.isDone && !flight.isEndless)
        this.#answer(
          flight,
          errorResponseFor(
            flight.request.id,
            new BridgeError('stopping', 'did not respond before shutdown'),
            this.#options.server,
          ),
        )
      flight.drop()
    }
    this.#end.abort(new Error('bridge shutdown'))
    this.#follower?.abort(new Error('bridge shutdown'))
    await Promise.all([
      this.#wire.end(Math.max(END_SESSION_MS, Math.min(graceMs, SLOW_END_MS))),
      this.#options.output.flushed(Math.max(FLUSH_MS, graceMs)),
    ])
  }

  /** Ends the wait in `close`. Pending requests still get an error response. */
  hurry(): void {
    this.#flights.hurry()
  }

  #read(bytes: Buffer): readonly (Message | Malformed)[] {
    const messages = parseMessages(bytes)
    if (messages.length === 1 && !isBatch(bytes)) return messages
    if (revisionOf(this.#wire.session.current?.version)?.hasBatches === true) return messages
    const why = `a batch, which only revision ${BATCHES} allows`
    return [{ kind: 'malformed', code: INVALID_REQUEST, why, id: null }]
  }

  #take(message: Message | Malformed): void {
    if (message.kind === 'malformed') this.#say(message)
    else if (message.kind === 'request') this.#request(message)
    else if (message.kind === 'response') this.#forwardResponse(message)
    else if (message.method === 'notifications/cancelled') this.#cancel(message)
    else this.#order = this.#notify(message, this.#order)
  }

  #request(given: Request): void {
    const version = statelessVersionOf(given.params)
    if (version !== undefined) this.#statelessVersion = version
    const declared = this.#elicitation && declareUrls(given)
    const request = declared ?? given
    const flight = new Flight(request, version)
    if (request.method === 'initialize') this.#isOnBehalf = declared !== undefined
    flight.isOnBehalf = version === undefined ? this.#isOnBehalf : declared !== undefined
    const added = this.#flights.add(flight)
    if (added !== 'added') {
      const { id } = request
      this.#options.output.write(
        added === 'in_use'
          ? errorResponse(id, { code: INVALID_REQUEST, message: 'A request with this id is still in flight.' })
          : errorResponseFor(
              id,
              new BridgeError('overloaded', 'has too many requests in flight'),
              this.#options.server,
            ),
      )
      return
    }
    this.#heldBytes += request.bytes.length
    const run = this.#run(flight)
    if (request.method === 'initialize') this.#handshake = run
  }

  /** Never rejects: errors become the response to the request. */
  async #run(flight: Flight): Promise<void> {
    const { request } = flight
    const [order, handshake] = [this.#order, this.#handshake]
    let done: (() => void) | undefined
    try {
      await Promise.all([order, handshake, this.#wire.settled()])
      done = await this.#flights.turn(flight)
      if (flight.isDone) return
      flight.isWaiting = false
      if (request.method === 'initialize') await this.#reinitialize()
      await exchange(flight, this.#deps)
      if (flight.prompt !== undefined) await this.#visit(flight, flight.prompt)
    } catch (error) {
      if (flight.isDone) return
      this.#options.log.warn(
        { method: knownMethod(request.method), reason: reasonOf(error), code: codeOf(error) },
        'request failed',
      )
      this.#answer(flight, errorResponseFor(request.id, error, this.#options.server))
    } finally {
      done?.()
      flight.isDone = true
      this.#flights.remove(flight)
      this.#heldBytes -= request.bytes.length
      this.#onRoom?.()
    }
  }

  /** Opens the pages of a prompt, and repeats the request once. */
  async #visit(flight: Flight, prompt: UrlPrompt): Promise<void> {
    const { request, signal } = flight
    const isRepeated = await this.#elicitation?.visit(request, prompt, signal)
    if (flight.isDone) return
    if (isRepeated !== true) return this.#answer(flight, textResponse(request, prompt))
    flight.prompt = undefined
    flight.repeated = repeated(request, prompt)
    await exchange(flight, this.#deps)
  }

  /** A second `initialize` of the client starts a new session. */
  async #reinitialize(): Promise<void> {
    this.#follower?.abort(new Error('a new session starts'))
    this.#isInitialized = false
    if (this.#wire.session.current !== undefined) await this.#wire.end(END_SESSION_MS)
  }

  async #notify(message: Notification, before: Promise<void>): Promise<void> {
    await Promise.all([before, this.#handshake, this.#wire.settled()])
    const { number } = this.#wire.session
    try {
      await this.#wire.notify(message.bytes, this.#headersOf(message), this.#end.signal)
    } catch (error) {
      if (this.#end.signal.aborted) return
      this.#options.log.warn(
        { method: knownMethod(message.method), code: codeOf(error), session: number },
        'notification not delivered',
      )
    }
    if (message.method !== 'notifications/initialized' || this.#wire.session.current === undefined) return
    this.#isInitialized = true
    this.#follow()
  }

  /** Forwards a response to a request of the server. No request waits for it. */
  #forwardResponse(message: Response): void {
    this.#wire.notify(message.bytes, this.#headersOf(message), this.#end.signal).catch((error: unknown) => {
      if (this.#end.signal.aborted) return
      this.#options.log.warn({ code: codeOf(error) }, 'client response not delivered')
    })
  }

  #headersOf(message: Notification | Response): Record<string, string> {
    if (this.#wire.session.current !== undefined || this.#statelessVersion === undefined)
      return this.#wire.session.headers()
    const method = message.kind === 'notification' ? { 'mcp-method': headerText(message.method) } : {}
    return { 'mcp-protocol-version': headerText(this.#statelessVersion), ...method }
  }

  /**
   * Cancels a request. Since 2026-07-28, closing its stream cancels it; before, a notification does (MCP,
   * cancellation). The client expects no response.
   */
  #cancel(message: Notification): void {
    const { requestId } = message.params
    const flight = isId(requestId) ? this.#flights.get(requestId) : undefined
    // The response was already on its way; the server ignores this, too.
    if (flight === undefined) return
    if (flight.isWaiting || flight.statelessVersion !== undefined) return flight.drop()
    flight.isDone = true
    void this.#notify(message, Promise.resolve())
      .then(() => this.#options.pause(CANCEL_GRACE_MS, flight.signal))
      .catch(() => undefined)
      .finally(() => flight.drop())
  }

  #follow(): void {
    this.#follower?.abort(new Error('replaced by a new stream'))
    if (!this.#isInitialized || this.#end.signal.aborted) return
    const follower = new AbortController()
    this.#follower = follower
    const { log, pause } = this.#options
    const deliver = (message: Message): void => this.#deliver(message, undefined, undefined)
    followServer({ wire: this.#wire, log, pause, deliver }, follower.signal).catch((error: unknown) =>
      log.warn({ code: codeOf(error) }, 'stream of server messages ended'),
    )
  }

  /** Forwards a message of the server to the client. */
  #deliver(message: Message, on: Flight | undefined, answer: EndpointAnswer | undefined): void {
    const { output, log } = this.#options
    if (message.kind !== 'response') {
      if (this.#isOnBehalf && this.#isForBridge(message)) return
      return output.write(message.bytes)
    }
    const flight = message.id === null ? on : this.#flights.get(message.id)
    if (flight === undefined || flight.isDone) return log.debug({}, 'dropped a response without a request')
    const { request, statelessVersion } = flight
    const prompt = flight.isOnBehalf ? promptIn(message) : undefined
    if (prompt !== undefined) {
      if (flight.repeated === undefined && this.#elicitation?.mayOpen(prompt) === true) flight.prompt = prompt
      else this.#answer(flight, textResponse(request, prompt))
      return
    }
    if (message.error === undefined) {
      if (statelessVersion === undefined) this.#wire.replayed.note(request)
      if (request.method === 'initialize' && answer !== undefined)
        this.#wire.session.establish(request, answer, message.result, false)
      if (request.method === 'tools/list' && statelessVersion !== undefined) this.#tools.learn(message.result)
    }
    const { id } = request
    this.#answer(flight, message.id === null ? errorResponse(id, Object(message.error)) : message.bytes)
  }

  /** Whether a message of the server belongs to URL elicitation, which the client does not know (2025-11-25). */
  #isForBridge(message: Request | Notification | Malformed): boolean {
    if (message.kind === 'malformed') return false
    const { method, params } = message
    if (method === 'notifications/elicitation/complete') {
      this.#elicitation?.complete(params['elicitationId'])
      return true
    }
    const { mode, url } = params
    if (message.kind !== 'request' || method !== 'elicitation/create' || mode !== 'url') return false
    const pages = [{ url: String(url), message: '', id: undefined }]
    const isOpened = this.#elicitation?.mayOpen({ pages }) === true
    if (isOpened) this.#elicitation?.open({ pages })
    const result = { action: isOpened ? 'accept' : 'decline' }
    const bytes = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: message.id, result }))
    this.#forwardResponse({ kind: 'response', bytes, id: message.id, result, error: undefined })
    return true
  }

  #answer(flight: Flight, line: Buffer): void {
    flight.isDone = true
    this.#options.output.write(line)
  }

  #say({ code, why, id }: Malformed): void {
    this.#options.output.write(errorResponse(id, { code, message: `This message is ${why}.` }))
  }
}

/** Method names may be logged, other text of a client may not. */
const knownMethod = (method: string): string => (/^[a-z]+(?:\/[a-z_]+){0,2}$/i.test(method) ? method : '')
