import type { Claims, GrantWithoutLogin } from '../../core/index.ts'

/** Scope of a token that is issued without a login. */
export interface Granted {
  readonly grant: GrantWithoutLogin
  readonly clientId: string
  /** `sub` of the issued token. */
  readonly subject: string
  /** The resource's URL. */
  readonly resource: string
  readonly scope: readonly string[]
  /** Claims of the assertion, some of which are copied to the issued token; undefined without any. */
  readonly claims: Claims | undefined
  /** Undefined: that of access tokens, an hour at most. */
  readonly lifetimeMs: number | undefined
  /** Remaining lifetime of the assertion, if the issued token must not outlive it. */
  readonly leftMs?: number | undefined
  /** For the log: the configuration entry that granted it, when there is no client. */
  readonly by?: string
}
