export { CedarError } from './cedar/parse-policies.ts'
export { cedarToYaml } from './cedar/convert-policies.ts'
export { type ConfigPart, ConfigPlaces, type PlaceTable } from './documents/config-places.ts'
export {
  API_VERSIONS,
  DEFAULT_API_GROUP,
  NEWEST_VERSION,
  OLDEST_VERSION,
  DOCUMENT_KINDS,
} from './documents/document-kinds.ts'
export { splitExternalAuth } from './documents/external-auth-option.ts'
export { bytesOf, isConfigurationFile, loadFiles, readTexts, STDIN } from './documents/load-files.ts'
export { loadCallersFile, loadRegistryFile, readCallersText } from './documents/load-single.ts'
export {
  type Declared,
  type Loaded,
  type Loading,
  type LocatedAuth,
  type PolicySet,
  withoutReferences,
} from './documents/loaded.ts'
export type { MarkedPod } from './documents/marked-pod.ts'
export type { NamedFile, NamedSecret } from './documents/named-files.ts'
export { parseDocuments, parseObjects } from './documents/parse-documents.ts'
export { type Located, type Problem, fileProblem as problemOfFile, renderProblem } from './documents/problem.ts'
export type { ProxyOverrides } from './routes/proxy-overrides.ts'
export { resolveAuth } from './routes/resolve-auth.ts'
export { resolveProxy, secretsDirectoryOf } from './routes/resolve-proxy.ts'
export type { ResolvedProxy } from './routes/resolved-proxy.ts'
export { YAML_LIMITS } from './yaml/yaml-limits.ts'
export { WRITTEN_YAML } from './yaml/written-yaml.ts'
