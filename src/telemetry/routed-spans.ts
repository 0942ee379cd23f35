import type {
  Again,
  Armed,
  Attempt,
  CredentialLookup,
  Inbound,
  Known,
  Matched,
  RequestResult,
  RequestTrace,
  Sealed,
} from '../core/index.ts'

/** Begins to follow a request: for a route by its name, or for none. */
export type Begin = (inbound: Inbound, route: string | undefined) => RequestTrace | undefined

/** Follows a request for whoever its route says: nothing of what happens before it is known is a span of its own. */
export class RoutedSpans implements RequestTrace {
  readonly #inbound: Inbound
  readonly #begin: Begin
  #spans: RequestTrace | undefined
  #hasBegun = false

  constructor(inbound: Inbound, begin: Begin) {
    this.#inbound = inbound
    this.#begin = begin
  }

  #of(route: string | undefined): RequestTrace | undefined {
    this.#hasBegun = true
    return (this.#spans = this.#begin(this.#inbound, route))
  }

  dropped(): void {}
  matched(matched: Matched): void {
    this.#of(matched.route.name)?.matched(matched)
  }
  known(known: Known): void {
    this.#spans?.known(known)
  }
  attempt(attempt: Attempt, lookup: CredentialLookup): void {
    this.#spans?.attempt(attempt, lookup)
  }
  armed(armed: Armed): void {
    this.#spans?.armed(armed)
  }
  sealed(sealed: Sealed): void {
    this.#spans?.sealed(sealed)
  }
  sending(): void {
    this.#spans?.sending()
  }
  received(...answer: Parameters<RequestTrace['received']>): void {
    this.#spans?.received(...answer)
  }
  again(again: Again): void {
    this.#spans?.again(again)
  }
  responded(): void {}
  body(): void {}
  finished(result: RequestResult): void {
    if (!this.#hasBegun) this.#of(undefined)
    this.#spans?.finished(result)
  }
}
