import { type Id, keyOf, type Request } from '../mcp/index.ts'
import type { UrlPrompt } from './url-elicitation.ts'

/** A client request without a response. */
export class Flight {
  readonly request: Request
  /** The revision in the request, since 2026-07-28; undefined after a handshake. */
  readonly statelessVersion: string | undefined
  readonly #controller = new AbortController()
  /** The client has a response or has cancelled. */
  isDone = false
  /** The request is queued and was not sent. */
  isWaiting = true
  /** The bridge declared URL elicitation for the client. */
  isOnBehalf = false
  /** The last response, which asks the user to open pages. */
  prompt: UrlPrompt | undefined
  /** The bytes to send instead of those of `request`, after a prompt. */
  repeated: Buffer | undefined

  constructor(request: Request, statelessVersion: string | undefined) {
    this.request = request
    this.statelessVersion = statelessVersion
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** A stream without a response, such as a subscription. */
  get isEndless(): boolean {
    return this.request.method === 'subscriptions/listen'
  }

  /** Aborts the request: the client has cancelled. */
  drop(): void {
    this.isDone = true
    this.#controller.abort(new Error('cancelled by the client'))
  }
}

/** Concurrent requests; others are queued. Subscriptions are not counted. */
const MAX_RUNNING = 256
/** Maximum number of queued requests. */
const MAX_WAITING = 20_000

/** Requests in flight, by ID. */
export class Flights {
  readonly #byKey = new Map<string, Flight>()
  readonly #queue: (() => void)[] = []
  #running = 0
  #onQuiet: (() => void) | undefined
  #isHurried = false

  get(id: Id): Flight | undefined {
    return this.#byKey.get(keyOf(id))
  }

  /** Rejects a duplicate ID, and requests beyond the limit. */
  add(flight: Flight): 'added' | 'in_use' | 'too_many' {
    const key = keyOf(flight.request.id)
    if (this.#byKey.has(key)) return 'in_use'
    if (this.#byKey.size >= MAX_RUNNING + MAX_WAITING) return 'too_many'
    this.#byKey.set(key, flight)
    return 'added'
  }

  remove(flight: Flight): void {
    const key = keyOf(flight.request.id)
    if (this.#byKey.get(key) === flight) this.#byKey.delete(key)
    if (this.#isQuiet()) this.#onQuiet?.()
  }

  /** Waits for the turn of a request. Returns the function that releases it. */
  async turn(flight: Flight): Promise<() => void> {
    if (flight.isEndless) return () => undefined
    if (this.#running < MAX_RUNNING) this.#running++
    else await new Promise<void>((resolve) => this.#queue.push(resolve))
    return () => {
      const next = this.#queue.shift()
      if (next === undefined) this.#running--
      else next()
    }
  }

  /** Resolves when only endless requests remain, on `hurry`, and after `limitMs`. */
  async quiet(limitMs: number): Promise<void> {
    if (this.#isHurried || this.#isQuiet()) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, limitMs)
    this.#onQuiet = resolve
    await promise
    clearTimeout(timer)
  }

  /** Ends the wait in `quiet`. Requests in flight continue. */
  hurry(): void {
    this.#onQuiet?.()
    this.#isHurried = true
  }

  all(): readonly Flight[] {
    return [...this.#byKey.values()]
  }

  #isQuiet(): boolean {
    return this.all().every(({ isEndless }) => isEndless)
  }
}
