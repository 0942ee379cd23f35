export type { AccessPolicy, TokenCheck } from './access.ts'
export type { HeldState } from './held.ts'
export { startRegistry, type RegistryOptions, type RegistryServer } from './server.ts'
export { openSource, type Source, type SourceConfig, type SourceDeps } from './source.ts'
