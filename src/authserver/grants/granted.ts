import type { Claims, GrantWithoutLogin } from '../../core/index.ts'

/** What a request that no login stands behind gets a token for. */
export interface Granted {
  readonly grant: GrantWithoutLogin
  readonly clientId: string
  /** `sub` of our token. */
  readonly subject: string
  /** The resource's URL. */
  readonly resource: string
  readonly scope: readonly string[]
  /** Of the assertion, from which our token takes those that it takes over; undefined where there are none. */
  readonly claims: Claims | undefined
  /** Undefined: that of access tokens, an hour at most. */
  readonly lifetimeMs: number | undefined
  /** What is left of what was shown, where our token ends with it. */
  readonly leftMs?: number | undefined
  /** For the log: what of the configuration gave it, where no client of ours did. */
  readonly by?: string
}
