import type {
  AuthenticatedCaller,
  Caller,
  Credential,
  CredentialLookup,
  Secret,
  SecretHandle,
  PresentedToken,
} from '../core/index.ts'

/** Caller → credential for one MCPExternalAuthConfig. Returns data, never touches a header. */
export interface Source {
  /** Throws `Failure`; synchronous where nothing has to be fetched. `token` is what the caller's request came with. */
  obtain(caller: Caller, token: PresentedToken): Credential | Promise<Credential>
  /** The backend refused `credential`: forget it and say whether obtaining again can give another one. */
  reject(caller: Caller, credential: Credential): boolean | Promise<boolean>
  /** Where the credential is that this caller would get now; absent where nothing is fetched. */
  lookup?(caller: Caller): CredentialLookup
  /** The credential of this caller replaced a refused one just now. Absent: never. */
  isFreshAfterRejection?(caller: Caller): boolean
  /** Lets go of connections; nothing is obtained after. */
  close?(): Promise<void>
}

/** What a fetching source would fetch for a caller; worked out without I/O and the same for the same token. */
export interface Plan {
  /** What tells this credential from others of the same config, issuer and subject; hashed into the cache key. */
  readonly keyParts: readonly string[]
  /** Role ARN, where there is one: purge and counters go by it. */
  readonly role?: string
  /** The credential may not outlive this (milliseconds since the epoch): for exchanges the end of the subject token. */
  readonly notAfterMs?: number | undefined
}

/** A credential with its own end, as the service that issued it says. */
export interface Fetched {
  readonly credential: Credential
  readonly expiresAtMs: number
}

/** A source that fetches one credential of the proxy's own, the same for every caller; it is told of none. */
export interface OwnSource {
  /** Throws `Failure`; by `endsAtMs` (`performance.now()`) at the latest. */
  fetch(endsAtMs: number): Promise<Fetched>
  /** Milliseconds for one request's fetch, whoever makes it: waiting for other replicas included. */
  readonly deadlineMs: number
  /** The secrets that take part in fetching: when one changes, what was fetched with the old one is retired. */
  readonly secrets?: readonly SecretHandle[]
  /** Calls `listener` whenever the service that is fetched from is well again after its circuit was open. */
  onRecovered?(listener: () => void): void
  /** Lets go of connections; nothing is fetched after. */
  close?(): Promise<void>
}

/** A source that fetches for each caller: `cached.ts` wraps it in the one cache. `P` carries what `plan` found to `fetch`. */
export interface FetchingSource<P extends Plan = Plan> extends Omit<OwnSource, 'fetch'> {
  /** Throws `Failure` (403 …) when this caller can have no credential. */
  plan(caller: AuthenticatedCaller): P
  /** Throws `Failure`; by `endsAtMs` (`performance.now()`) at the latest. `token` is the caller's, of any of his requests. */
  fetch(caller: AuthenticatedCaller, plan: P, endsAtMs: number, token: Secret): Promise<Fetched>
  /** `keyParts` hold the token's digest, so that a refusal of the token is worth remembering. Default false. */
  readonly isKeyedByToken?: boolean
}
