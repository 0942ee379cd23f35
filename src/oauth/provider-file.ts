import type { Secret, SecretHandle } from '../core/index.ts'

/** A secret in a file that may change at any time. */
export interface SecretFile {
  /** The current value. Throws `secret_unavailable` while the file was never readable. */
  current(): Secret
  /** Rereads the file now; resolves to true when the value changed. */
  refresh(): Promise<boolean>
}

/** The files of a provider entry, kept current (decisions §2.6); undefined for unset ones. */
export interface ProviderFiles {
  readonly caCert: (() => Buffer | undefined) | undefined
  readonly authToken: SecretFile | undefined
  readonly clientSecret: SecretHandle | undefined
  close(): void
}
