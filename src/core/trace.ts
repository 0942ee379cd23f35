import type { Failure } from './failure.ts'

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
  /** There is none for this caller: no role, say. */
  | { readonly from: 'nowhere' }

/** How a request ended, as log, metrics and observers have it. */
export interface RequestResult {
  readonly status: number
  /** A failure code, `client_gone`, `aborted` (the answer broke off, and not by its client), or empty when all went well. */
  readonly reason: string
  readonly firstByteAtMs: number | undefined
  readonly failure: Failure | undefined
}

/**
 * Whether a request counts among failures: not one whose client ended it, nor one without a token, with which each client begins
 * and `extauth check` asks for the challenge.
 */
export const isFailed = (status: number, reason: string): boolean =>
  reason === '' ? status >= 400 : reason !== 'client_gone' && reason !== 'missing_token'
