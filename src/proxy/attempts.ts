import { Failure, type Again, type Armed, type Attempt, type Body } from '../core/index.ts'

/** Maximum redirects of one request, all on the backend's own origin. */
const MAX_REDIRECTS = 5

/**
 * The attempts of one request, and the only place that decides about another one (decisions §4, Repeat once): one
 * more after a rejected credential or a clock skew, one after a lost connection, and up to five redirects; none if
 * the body is gone.
 */
export class Attempts implements IterableIterator<Attempt> {
  /** Number of attempts so far. */
  count = 0
  readonly #canReplay: boolean
  /** Repeats after a rejection by the backend. */
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
    // A streamed body does not make the first attempt final: the backend's verdict on the credential is still needed.
    return { done: false, value: { number: this.count, final: this.#refused > 0 } }
  }

  /**
   * Prepares another attempt, or throws the caller's failure: the route's `whenRejected`, `backend_wants_credential`,
   * `backend_error`, or the failure of a lost connection.
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
        // A fresh credential was rejected as well: fetching more with each request would not help.
        if (this.#refused > 0) throw (await route.obtain.rejectedAgain?.(armed)) ?? rejected(armed, again.status)
        // Reported in any case, so that the next request uses another credential.
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
