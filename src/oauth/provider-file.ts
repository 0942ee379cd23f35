import type { Secret, SecretHandle } from '../core/index.ts'

/** A secret in a file that may change at any time. */
export interface SecretFile {
  /** The value now. Throws `secret_unavailable` while the file has never been readable. */
  current(): Secret
  /** Looks at the file at once; true when the value differs from before. */
  refresh(): Promise<boolean>
}

/** The files that a provider entry names, kept current (decisions §2.6). Undefined where none is named. */
export interface ProviderFiles {
  readonly caCert: (() => Buffer | undefined) | undefined
  readonly authToken: SecretFile | undefined
  readonly clientSecret: SecretHandle | undefined
  close(): void
}
