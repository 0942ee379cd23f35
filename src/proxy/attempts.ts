import { Failure, type Again, type Armed, type Attempt, type Body } from '../core/index.ts'

/** Redirects of one request that are followed on the backend's own origin. */
const MAX_REDIRECTS = 5

/**
 * The tries of one request, and the only place that decides about another one (decisions §4, Repeat once): one more after
 * a refused credential or a skewed clock, one after a lost connection, and up to five redirects; nothing when the body is gone.
 */
export class Attempts implements IterableIterator<Attempt> {
  /** How many there have been. */
  count = 0
  readonly #canReplay: boolean
  /** Repeats after the backend refused what was sent. */
  #refused = 0
  #lost = 0
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
    return { done: false, value: { number: this.count, final: this.#refused > 0 } }
  }

  /**
   * Makes ready for another try, or throws what the caller gets instead: the route's `whenRejected`,
   * `backend_wants_credential`, `backend_error`, or the failure of a lost connection.
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
        if (this.#canReplay && this.#lost++ === 0) return
        throw again.failure
      case 'clock_skew':
        route.apply.noteServerTime(again.serverTimeMs)
        if (this.#mayRepeatRefused()) return
        throw rejected(armed, again.status)
      case 'credential_rejected': {
        // A fresh credential is refused like the one before: fetching more of them with each request helps nobody.
        if (this.#refused > 0) throw (await route.obtain.rejectedAgain?.(armed)) ?? rejected(armed, again.status)
        // Told in any case, so that the next request starts with another one.
        const hasAnother = await route.obtain.reject(armed)
        if (hasAnother && this.#mayRepeatRefused()) return
        throw rejected(armed, again.status)
      }
      case 'insufficient_scope':
        throw (await route.obtain.widen?.(armed, again.scopes)) ?? rejected(armed, again.status)
    }
  }

  #mayRepeatRefused(): boolean {
    return this.#canReplay && this.#refused++ === 0
  }
}

function rejected({ credential, forwarded = [], known }: Armed, status: number): Failure {
  const { route } = known.matched
  const whenRejected = route.obtain.whenRejected?.(known) ?? route.whenRejected
  const isShown = credential.kind !== 'none' || forwarded.some(({ isPlain }) => isPlain !== true)
  return new Failure(isShown ? whenRejected : 'backend_wants_credential', {
    detail: `the backend answered ${status}`,
  })
}
