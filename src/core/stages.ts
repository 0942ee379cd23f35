import type { AuthenticatedCaller, Caller } from './caller.ts'
import type { Credential, HeaderCredential } from './credential.ts'
import type { CredentialLookup, DropRule, RequestResult } from './trace.ts'
import type { Failure } from './failure.ts'
import type { ClientRequest, ClientResponse } from './local-handler.ts'
import type { FailureCode } from './failures.ts'
import type { FilterAnswer, RequestView } from './request-view.ts'

declare const stage: unique symbol

/**
 * A value that says which stages a request has passed. The brand exists only in the type system; each stage is minted by
 * a cast in exactly one file (the architecture test counts them), so no order but the one in `pipeline.ts` compiles.
 */
export type Staged<Name extends string, T> = T & { readonly [stage]: Name }

/** The request body: absent, kept (so it can be hashed and sent again), or flowing once. */
export type Body =
  | { readonly kind: 'none' }
  | { readonly kind: 'kept'; readonly bytes: Buffer }
  | { readonly kind: 'stream'; readonly stream: ClientRequest; readonly length: number | undefined }

/** A request as it came in, after the checks that need no route. */
export interface Inbound {
  readonly request: ClientRequest
  readonly response: ClientResponse
  /** Request id: ours, unguessable enough for support, in logs, errors and `X-Request-Id`. */
  readonly id: string
  readonly receivedAtMs: number
  /** Address of the client, as far as `listen.trustedProxies` lets headers say it; `unix` for Unix sockets. */
  readonly peer: string
  readonly method: string
  /** Raw path, checked (decisions §2.8), without query. */
  readonly path: string
  /** Raw query without `?`; empty when there is none. */
  readonly query: string
  /** Header lines (name, value, name, value …) that are added to the answer whatever it is: CORS, request id. */
  readonly responseHeaders: string[]
  /** Who follows this request; undefined when nobody does, which is how it nearly always is. */
  readonly trace: RequestTrace | undefined
  /** True once the client has gone or was refused: nothing that is still to be done for this request matters. */
  readonly gone: boolean
  /** Called when what the client sends of its body is refused; whoever works for the request sets it, the latest counts. */
  onRefused: ((failure: Failure) => void) | undefined
  /** Its body stays counted until each call has its `releaseBody`. */
  holdBody(): void
  releaseBody(): void
  /**
   * Forward calls it once when the answer is an event stream, after its head is written: `end` ends the answer cleanly
   * and lets go of the backend. It is called when the caller's token ends (GET) and at the end of a drain.
   */
  onStream(end: () => void): void
}

/** Stage 1: the route is known. Caller credentials are already out of `headers`. */
export type Matched = Staged<
  'matched',
  {
    readonly inbound: Inbound
    readonly route: Route
    /** Path and query to send, byte for byte (decisions §7, Path). */
    backendPath: string
    /** Values of the `Authorization` header lines, for the authenticator only. */
    readonly authorization: readonly string[]
    /** End-to-end headers to forward, flat (name, value, …), after the header policy. */
    readonly headers: string[]
    body: Body
    /** What the request asks for; undefined on routes where requests are not read. Set by the stage `authorize`. */
    view: RequestView | undefined
    /** What of the backend's answer goes out; undefined: all of it. Set by the stage `authorize`. */
    filterAnswer: FilterAnswer | undefined
    /** Gives a client the session id of the backend in the form bound to this caller. Set by the session stage. */
    sessionToClient: ((backendSessionId: string) => string) | undefined
  }
>

/** Stage 2: the caller is known. */
export type Known = Staged<'known', { readonly matched: Matched; readonly caller: Caller }>

/** Stage 3: the credential that this caller has at that backend. */
export type Armed = Staged<
  'armed',
  {
    readonly known: Known
    readonly credential: Credential
    /** What the route sends beside it (`headerForward`); absent where it sends nothing. */
    readonly forwarded?: readonly HeaderCredential[]
  }
>

/** Stage 4: final headers, signed where the type signs. Nothing may touch it after. */
export type Sealed = Staged<
  'sealed',
  {
    readonly armed: Armed
    /** The request that this one forwards. */
    readonly inbound: Inbound
    readonly route: Route
    readonly method: string
    /** Path and query as sent. */
    readonly path: string
    /** Flat header list as sent, `host` and `content-length` included where they apply. */
    readonly headers: readonly string[]
    readonly body: Body
    /** The last try as far as the backend's answer decides: whatever it says is the answer, so nothing is peeked at. */
    readonly final: boolean
  }
>

/** Why the loop should try once more; said only before a byte of the answer was sent. */
export type Again =
  | { readonly reason: 'credential_rejected'; readonly status: number }
  | { readonly reason: 'clock_skew'; readonly status: number; readonly serverTimeMs: number }
  | { readonly reason: 'redirect'; readonly status: number; readonly path: string }
  /** `failure`: what the caller gets where it is not tried again. */
  | { readonly reason: 'connection_lost'; readonly failure: Failure }

/** What became of a sealed request. */
export type Outcome =
  | {
      readonly done: true
      readonly status: number
      readonly firstByteAtMs: number
      readonly aborted: boolean
      /** Why an aborted answer is not whole, unless its client left. */ readonly torn?: Failure | undefined
    }
  | { readonly done: false; readonly again: Again }

/** Which try this is; `final` when no repeat may follow an answer of the backend. */
export interface Attempt {
  readonly number: number
  readonly final: boolean
}

/** Matched → Known. Throws `Failure` (401, 403, 503). */
export type Authenticate = (matched: Matched) => Known | Promise<Known>

/** Reads an MCP request and decides whether this caller may make it, before a credential is obtained. */
export interface Authorize {
  /** Bytes of a body that is read; a larger one is refused. */
  readonly limitBytes: number
  /** Looked at before a body is taken. Throws `Failure` bad_request. */
  admit(inbound: Inbound): void
  /** Sets `matched.view` and `matched.filterAnswer`. Throws `Failure` (400, 403) for a request that is ambiguous or not allowed. */
  authorize(known: Known): void
}

/** Known → Armed, and what to do when the backend refuses the credential. */
export interface Obtain {
  obtain(known: Known): Armed | Promise<Armed>
  /**
   * The backend refused this credential: forget it, and say whether obtaining again can give another one
   * (fetched credentials: yes; static secrets: only if the source has changed).
   */
  reject(armed: Armed): boolean | Promise<boolean>
  /**
   * The credential replaced a refused one just now: what the backend says of it is the answer (decisions §4, Repeat once).
   * Absent: never.
   */
  isFreshAfterRejection?(armed: Armed): boolean
  /** Where the credential is that this caller would get now; changes and counts nothing. Only for observers. */
  lookup(known: Known): CredentialLookup
}

/** Armed → Sealed. Synchronous and free of I/O. */
export interface Apply {
  /** True when the applier hashes the body, so that it must be kept. */
  readonly needsBody: boolean
  /** Looked at before a body is taken. Throws `Failure` aws_chunked (400) for one that can't be signed anew. */
  admit(inbound: Inbound): void
  apply(armed: Armed, attempt: Attempt): Sealed
  /** The backend says what time it is there; later signatures use it. */
  noteServerTime(serverTimeMs: number): void
}

/** Sealed → Outcome: streams the answer into `inbound.response`, or says Again. Never repeats by itself. */
export interface Forward {
  forward(sealed: Sealed): Promise<Outcome>
  /** An upgraded connection (WebSocket), where the route allows it. */
  upgrade(sealed: Sealed): Promise<Outcome>
  close(): Promise<void>
}

/** The backend of a route. Path and query are raw, as they are written. */
export interface RouteTarget {
  /** `https://host[:port]`. */
  readonly origin: string
  /** `host[:port]` for the Host header; default ports are left out. */
  readonly host: string
  /** Never empty; `/` when the target has none. */
  readonly path: string
  /** Without `?`; empty when there is none. */
  readonly query: string
}

/**
 * A route at run time: the resolved route (its settings have the names and units that their schema gives them; here are
 * those that a stage reads), what is worked out of them at load, and the stages.
 */
export interface Route {
  readonly name: string
  /** Path prefix; `/` matches all. */
  readonly path: string
  /** What follows the prefix is ignored and exactly the target's path is sent (manifest routes whose target has a path). */
  readonly exactTarget: boolean
  readonly target: RouteTarget
  /** Identity headers of gateways that callers may send all the same (`gateway-headers.ts`). */
  readonly passHeaders: readonly string[]
  readonly allowUpgrade: boolean
  /** Bytes. */
  readonly limits: { readonly bufferedBody: number }
  readonly requiredScopes: readonly string[]

  /** `type` of its MCPExternalAuthConfig; a metric label. */
  readonly type: string
  /** Lower-case names of the headers that this route's credential sets: caller-sent copies are dropped. */
  readonly ownedHeaders: readonly string[]
  /** What a caller gets when the backend refuses the last credential: `no_session` where a login gives another. */
  readonly whenRejected: FailureCode
  /** The protected resource's URL; undefined where callers are anonymous. */
  readonly resourceUrl: string | undefined
  /** False for mode `anonymous`: no challenge, no metadata document, no session binding. */
  readonly isProtected: boolean
  readonly realm: string

  readonly authenticate: Authenticate
  /** Absent: requests are not read, and all are allowed. */
  readonly authorize?: Authorize | undefined
  /**
   * True when the session behind the caller's token was revoked since; asked about each GET stream twice a second. Absent: no
   * caller of this route has one.
   */
  readonly isRevoked?: (caller: AuthenticatedCaller) => boolean
  readonly obtain: Obtain
  readonly apply: Apply
  readonly forward: Forward
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
  /** The whole body of a request that is refused, where it is at hand; absent: nobody wants it. */
  refusedBody?(body: Buffer): void
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
