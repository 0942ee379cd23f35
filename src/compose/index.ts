export type { ProxyControls, Purged, ReloadResult } from './admin.ts'
export {
  checkFiles,
  type FileToJudge,
  type FileVerdict,
  judgeFile,
  judgeSecret,
  type NamedThings,
  verdictSentence,
} from './check-files.ts'
export { Closers, whole } from './closers.ts'
export { ConfigError, placed, placedListener } from './config-error.ts'
export { egressFrom } from './egress.ts'
export { EXIT, type Io, processIo, UsageError, WORKER } from './io.ts'
export { type LoadedSources, loadProxyConfig, loadSources, type ProxySources } from './load-config.ts'
export { memorySharesOf } from './memory-limit.ts'
export { namesIn } from './named-series.ts'
export { documentsIn, nothingOfOurs } from './nothing-of-ours.ts'
export { resourceUrlOf } from './resource-documents.ts'
export { storageConfig } from './storage-config.ts'
export { noCredentials } from './token-file.ts'
export { VERSION, versionLine } from './version.ts'
export { returnMemoryAtRest } from './memory-at-rest.ts'
