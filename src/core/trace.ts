import type { Failure } from './failure.ts'
import type { Again, Armed, Attempt, Inbound, Known, Matched, Sealed } from './stages.ts'

/** Why a header of a request is not forwarded. */
export type DropRule =
  /** Between two neighbours only, or named in `Connection` (RFC 9110 §7.6.1). */
  | 'hop_by_hop'
  /** Made anew by us: framing, `Host`, `Expect`. */
  | 'made_anew'
  /** A credential of the caller, or a copy of it (decisions §3.1). */
  | 'caller_credential'
  /** Says who asked, from where, or for what else than the path; a caller's word for it is worth nothing. */
  | 'hearsay'
  /** The credential of the route sets it. */
  | 'set_by_us'
  /** Another spelling of a name that means something here. */
  | 'other_spelling'

/** Where a credential is, or comes from, at the moment of asking. */
export type CredentialLookup =
  /** Nothing is fetched for it. */
  | { readonly from: 'config' }
  /** It is at hand. Milliseconds since the epoch; `refreshAtMs` is when a new one is fetched ahead. */
  | {
      readonly from: 'cache'
      readonly obtainedAtMs: number
      readonly refreshAtMs: number
      readonly endMs: number
    }
  /** It is being fetched for somebody already. */
  | { readonly from: 'flight' }
  /** It has to be fetched. */
  | { readonly from: 'service' }
  /** It was refused a moment ago, and that still counts. */
  | { readonly from: 'refusal' }

/** How a request ended, as log, metrics and observers have it. */
export interface RequestResult {
  readonly status: number
  /** A failure code, `client_gone`, `aborted`, or empty when all went well. */
  readonly reason: string
  readonly firstByteAtMs: number | undefined
  readonly failure: Failure | undefined
}

/**
 * Follows one request; called as it goes, in this order, `attempt` to `again` once for each try. Whoever implements it
 * notes the times, keeps no more than it may (heads hold credentials: they are masked where they are kept), changes
 * nothing but `traceparent` among the headers of a match, and never throws.
 */
export interface RequestTrace {
  /** A header line of the request that is not forwarded. */
  dropped(name: string, rule: DropRule): void
  matched(matched: Matched): void
  known(known: Known): void
  /** A try begins; where its credential is. */
  attempt(attempt: Attempt, lookup: CredentialLookup): void
  armed(armed: Armed): void
  /** The head (and the body, where it is kept) as it will be sent. */
  sealed(sealed: Sealed): void
  /** There is a connection, and the request goes out on it. */
  sending(): void
  /** A piece of a request's body that is streamed; absent: nobody wants it. What is kept is in `sealed`. */
  requestBody?(chunk: Buffer): void
  /** The head of the backend's answer, as it came; lower-case names. */
  received(status: number, headers: Readonly<Record<string, string | readonly string[] | undefined>>): void
  again(again: Again): void
  /** The head of the answer to the client, flat. */
  responded(status: number, headers: readonly string[]): void
  /** A piece of the body of that answer. */
  body(chunk: Buffer): void
  finished(result: RequestResult): void
}

/** Sees requests from their arrival on. Without one, nothing is called, kept or copied for it. */
export interface RequestObserver {
  /** A request has arrived, nothing of it is judged yet. Gives who follows it; undefined when nobody does. */
  arrived(inbound: Inbound): RequestTrace | undefined
}
