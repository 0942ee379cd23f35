import { type Id, keyOf, type Request } from '../mcp/index.ts'

/** A request of the client that has no answer yet. */
export class Flight {
  readonly request: Request
  /** The revision that it names, in the stateless era; undefined where there was a handshake. */
  readonly statelessVersion: string | undefined
  readonly #controller = new AbortController()
  /** The client has its answer, or wants none any more. */
  isDone = false
  /** It waits for its turn: the server knows nothing of it. */
  isWaiting = true

  constructor(request: Request, statelessVersion: string | undefined) {
    this.request = request
    this.statelessVersion = statelessVersion
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** A stream that ends only when somebody ends it: nobody waits for its answer. */
  get isEndless(): boolean {
    return this.request.method === 'subscriptions/listen'
  }

  /** The client wants no answer any more; what runs for it ends. */
  drop(): void {
    this.isDone = true
    this.#controller.abort(new Error('nobody waits for it any more'))
  }
}

/** Requests that run at a time; what is beyond waits for its turn. A subscription is not counted. */
const MAX_RUNNING = 256
/** Requests that may wait for their turn. */
const MAX_WAITING = 20_000

/** The requests of the client that have no answer yet, by id. */
export class Flights {
  readonly #byKey = new Map<string, Flight>()
  readonly #queue: (() => void)[] = []
  #running = 0
  #onQuiet: (() => void) | undefined
  #isHurried = false

  get(id: Id): Flight | undefined {
    return this.#byKey.get(keyOf(id))
  }

  /** False when its id is in use, or when there are too many. */
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

  /** Waits for the turn of a request; gives what has to be called when it is over. */
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

  /** Resolves when nothing runs but what never ends, with `hurry`, and after `limitMs` in any case. */
  async quiet(limitMs: number): Promise<void> {
    if (this.#isHurried || this.#isQuiet()) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, limitMs)
    this.#onQuiet = resolve
    await promise
    clearTimeout(timer)
  }

  /** Ends the waiting in `quiet`: what runs is left as it is. */
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
