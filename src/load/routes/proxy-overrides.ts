import type { InspectorMode, AuthSection } from '../../resources/index.ts'
import type { NamedFile, NamedSecret } from '../documents/named-files.ts'
/** What the command line says beside the files; all optional. */
export interface ProxyOverrides {
  /** `--listen`; beats the files. */
  readonly listen?: string | undefined
  /** `--admin`. */
  readonly admin?: string | undefined
  /** `--secrets-dir`, relative to the working directory. */
  readonly secretsDirectory?: string | undefined
  /** `--namespace`: documents of others are left alone. */
  readonly namespace?: string | undefined
  /** The section of `--callers FILE` (`loadCallersFile`); beats `spec.auth` of ProxyConfig. */
  readonly callers?: AuthSection | undefined
  /** The files that this section names. */
  readonly callersFiles?: readonly NamedFile[] | undefined
  /** The secrets that it names. */
  readonly callersSecrets?: readonly NamedSecret[] | undefined
  /** `--ignore-manifest-callers`: what manifests say about who may call is left alone. Default false. */
  readonly ignoreManifestCallers?: boolean | undefined
  /** `--target`, the short form: one route instead of those in the files. */
  readonly target?: string | undefined
  /** The name after `#` of `--external-auth FILE#name`; the only config of the file when absent. */
  readonly externalAuth?: string | undefined
  /** The manifest runs in pods that an operator makes: messages name its fields, and no option. Default false. */
  readonly inCluster?: boolean | undefined
  /** Only this route runs: what only others use is left alone. Without effect where there is none of this name. */
  readonly onlyRoute?: string | undefined
  /** What was read, for messages about no document. */
  readonly paths?: readonly string[] | undefined
  /** `--inspector`; beats the files. */
  readonly inspector?: InspectorMode | undefined
}
