import { Failure, type Again, type Armed, type Attempt, type Body } from '../core/index.ts'

/** Redirects of one request that are followed on the backend's own origin. */
const MAX_REDIRECTS = 5

/**
 * The tries of one request, and the only place that decides about another one (decisions §4, Repeat once): one more after
 * a refused credential, a skewed clock or a lost connection, and up to five redirects; nothing when the body is gone.
 */
export class Attempts implements IterableIterator<Attempt> {
  /** How many there have been. */
  count = 0
  readonly #canReplay: boolean
  #repeats = 0
  #redirects = 0

  constructor(body: Body) {
    this.#canReplay = body.kind !== 'stream'
  }

  [Symbol.iterator](): this {
    return this
  }

  next(): IteratorResult<Attempt, never> {
    this.count++
    // A streamed body does not make the first try the last: what the backend says of the credential is still wanted.
    return { done: false, value: { number: this.count, final: this.#repeats > 0 } }
  }

  /**
   * Makes ready for another try, or throws what the caller gets instead: the route's `whenRejected`,
   * `backend_unreachable`, `backend_error`.
   */
  async allow(armed: Armed, again: Again): Promise<void> {
    const { matched } = armed.known
    const { route } = matched
    switch (again.reason) {
      case 'redirect':
        if (!this.#canReplay || ++this.#redirects > MAX_REDIRECTS)
          throw new Failure('backend_error', { detail: 'too many redirects' })
        matched.backendPath = again.path
        return
      case 'connection_lost':
        if (this.#mayRepeat()) return
        throw new Failure('backend_unreachable', { cause: again.cause })
      case 'clock_skew':
        route.apply.noteServerTime(again.serverTimeMs)
        if (this.#mayRepeat()) return
        throw rejected(armed, again.status)
      case 'credential_rejected': {
        // A fresh credential is refused like the one before: fetching more of them with each request helps nobody.
        if (this.#repeats > 0) throw rejected(armed, again.status)
        // Told in any case, so that the next request starts with another one.
        const hasAnother = await route.obtain.reject(armed)
        if (hasAnother && this.#mayRepeat()) return
        throw rejected(armed, again.status)
      }
    }
  }

  #mayRepeat(): boolean {
    return this.#canReplay && this.#repeats++ === 0
  }
}

function rejected(armed: Armed, status: number): Failure {
  return new Failure(armed.known.matched.route.whenRejected, { detail: `the backend answered ${status}` })
}
