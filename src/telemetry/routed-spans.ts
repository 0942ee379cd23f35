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

/** Starts the trace of a request, for a route by name or without one. */
export type Begin = (inbound: Inbound, route: string | undefined) => RequestTrace | undefined

/** Traces a request for the receiver of its route. Steps before the route is known have no span. */
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
