import type { ScopeCounters } from './counters.ts'

/** One MCPExternalAuthConfig as the cache sees it; made by `CredentialCache.scope`. */
export interface CacheScope {
  /** `<namespace>/<name>` of the resource. */
  readonly config: string
  /** Its `type`; a metric label. */
  readonly type: string
  readonly counters: ScopeCounters
}

/** Which version of a config and of its secrets a credential was obtained with. */
export interface Generation {
  readonly configHash: string
  /** Digest over the secrets that take part in fetching; empty where none does. */
  readonly secrets: string
}

/** Whose credential it is: what purge, retirement and listing go by. */
export interface Ownership {
  readonly scope: CacheScope
  readonly generation: Generation
  readonly issuer: string
  readonly subject: string
  readonly role: string | undefined
}

/** What is wanted from the cache: the key, whose it is, and how to get it. Kept per caller by whoever asks often. */
export interface CacheSlot<V> extends Ownership {
  /** From `hashKey`: everything that tells this credential from any other. */
  readonly key: string
  /** Whom the bound per caller counts, beside the issuer. */
  readonly ownerId: string
  /** No credential of this slot outlives this (milliseconds since the epoch). */
  readonly notAfterMs: number | undefined
  /** The key stands for one token of the caller: that it is refused is remembered. Default false. */
  readonly isKeyedByToken?: boolean
  /** Of the token that the request came with, where there is one: requests with different tokens may share a key. */
  readonly tokenDigest?: string | undefined
  /** Milliseconds that a request may take to get one, waiting for other replicas included. */
  readonly deadlineMs: number
  /**
   * Gets a new one, with its end in milliseconds since the epoch, by `endsAtMs` (`performance.now()`) at the latest. Throws
   * `Failure`.
   */
  fetch(endsAtMs: number): Promise<{ readonly value: V; readonly expiresAtMs: number }>
}

/** Which credentials a purge removes: all that match every field given. */
export interface PurgeFilter {
  readonly subject?: string
  readonly issuer?: string
  /** `<namespace>/<name>`, or the name alone. */
  readonly config?: string
  readonly role?: string
}

/** Whether a purge with this filter concerns what belongs to `owner`. */
export function matchesFilter(owner: Ownership, filter: PurgeFilter): boolean {
  const { config } = owner.scope
  return (
    (filter.subject === undefined || owner.subject === filter.subject) &&
    (filter.issuer === undefined || owner.issuer === filter.issuer) &&
    (filter.role === undefined || owner.role === filter.role) &&
    (filter.config === undefined || config === filter.config || config.endsWith(`/${filter.config}`))
  )
}
