import type { InspectorMode, AuthSection } from '../../resources/index.ts'
import type { NamedFile, NamedSecret } from '../documents/named-files.ts'
/** Command-line settings besides the files; all optional. */
export interface ProxyOverrides {
  /** `--listen`; overrides the files. */
  readonly listen?: string | undefined
  /** `--admin`. */
  readonly admin?: string | undefined
  /** `--secrets-dir`, relative to the working directory. */
  readonly secretsDirectory?: string | undefined
  /** `--namespace`: documents of other namespaces are ignored. */
  readonly namespace?: string | undefined
  /** The section of `--callers FILE` (`loadCallersFile`); overrides `spec.auth` of ProxyConfig. */
  readonly callers?: AuthSection | undefined
  /** The files that this section references. */
  readonly callersFiles?: readonly NamedFile[] | undefined
  /** The secrets that it references. */
  readonly callersSecrets?: readonly NamedSecret[] | undefined
  /** `--ignore-manifest-callers`: callers defined in manifests are ignored. Default: false. */
  readonly ignoreManifestCallers?: boolean | undefined
  /** `--target`, the short form: one route instead of those in the files. */
  readonly target?: string | undefined
  /** The name after `#` of `--external-auth FILE#name`; the only config of the file when absent. */
  readonly externalAuth?: string | undefined
  /** The manifest runs in pods of an operator: messages refer to its fields instead of options. Default: false. */
  readonly inCluster?: boolean | undefined
  /** Only this route runs. Without effect if there is no route of this name. */
  readonly onlyRoute?: string | undefined
  /** The paths that were read, for messages without a document. */
  readonly paths?: readonly string[] | undefined
  /** `--inspector`; overrides the files. */
  readonly inspector?: InspectorMode | undefined
}
