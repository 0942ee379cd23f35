import type {
  Failure,
  AuthenticatedCaller,
  Caller,
  Credential,
  CredentialLookup,
  EpochMs,
  Matched,
  MonotonicMs,
  PresentedToken,
  Secret,
  SecretHandle,
} from '../core/index.ts'

/** The request that a credential is for; sources that do not read requests ignore it. */
export type RequestContext = Pick<Matched, 'view' | 'route'>

/** Credentials of callers for one MCPExternalAuthConfig. A source never modifies headers. */
export interface Source {
  /** Throws `Failure`; synchronous when nothing must be fetched. `token` is the request's access token. */
  obtain(caller: Caller, token: PresentedToken, request?: RequestContext): Credential | Promise<Credential>
  /** Reports that the backend rejected `credential`; resolves to whether obtaining again can give another one. */
  reject(caller: Caller, credential: Credential, request?: RequestContext): boolean | Promise<boolean>
  /** Reports that the backend rejected the replacement too; resolves to the caller's failure, if more than a code. */
  rejectedAgain?(caller: Caller, credential: Credential, request?: RequestContext): Promise<Failure | undefined>
  /** The failure for a credential without these scopes. Absent: no other scopes can be obtained. */
  widen?(caller: Caller, scopes: readonly string[]): Promise<Failure>
  /** Where this caller's credential would come from now; absent when nothing is fetched. */
  lookup?(caller: Caller, request?: RequestContext): CredentialLookup
  /** True when this caller's credential just replaced a rejected one. Absent: never. */
  isFreshAfterRejection?(caller: Caller, request?: RequestContext): boolean
  /** The credential depends on the request, not only on the caller. Default false. */
  readonly readsRequest?: boolean
  /** Closes connections; nothing is obtained afterwards. */
  close?(): Promise<void>
}

/** What a fetching source would fetch for a caller, computed without I/O from the token. */
export interface Plan {
  /** Identifies this credential among those of the same config, issuer and subject; hashed into the cache key. */
  readonly keyParts: readonly string[]
  /** Role ARN, if any: for purges and counters. */
  readonly role?: string
  /**
   * Upper limit of the credential's expiry: for exchanges the expiry of the subject
   * token.
   */
  readonly notAfterMs?: number | undefined
}

/** A credential and its expiry, as returned by the issuing service. */
export interface Fetched {
  readonly credential: Credential
  readonly expiresAtMs: EpochMs
}

/** A source of one credential of the proxy itself, the same for all callers. */
export interface OwnSource {
  /** Throws `Failure`; completes by `endsAtMs`. */
  fetch(endsAtMs: MonotonicMs): Promise<Fetched>
  /** Deadline in milliseconds for a fetch, including waits for other replicas. */
  readonly deadlineMs: number
  /** The secrets used for fetching: a change invalidates cached credentials. */
  readonly secrets?: readonly SecretHandle[]
  /** Calls `listener` when the service recovers after its circuit was open. */
  onRecovered?(listener: () => void): void
  /** Closes connections; nothing is fetched afterwards. */
  close?(): Promise<void>
}

/** A source that fetches per caller; `cached.ts` wraps it in the cache. `P` passes results of `plan` to `fetch`. */
export interface FetchingSource<P extends Plan = Plan> extends Omit<OwnSource, 'fetch'> {
  /** Throws `Failure` (403 …) for a caller without a possible credential. */
  plan(caller: AuthenticatedCaller, request?: RequestContext): P
  /** The plan depends on the request, so that it is kept with that and not with the token. Default false. */
  readonly readsRequest?: boolean
  /**
   * More parts of the cache key, which change between requests with one token: those of a connection. Throws `Failure`.
   */
  changingParts?(caller: AuthenticatedCaller): readonly string[] | Promise<readonly string[]>
  /** As in `Source`. */
  widen?(caller: AuthenticatedCaller, scopes: readonly string[]): Promise<Failure>
  /**
   * Throws `Failure`; completes by `endsAtMs`. `token` is that of any request of the caller.
   */
  fetch(caller: AuthenticatedCaller, plan: P, endsAtMs: MonotonicMs, token: Secret): Promise<Fetched>
  /** `keyParts` contain the token's digest, so that a rejection of the token may be cached. Default false. */
  readonly isKeyedByToken?: boolean
}
