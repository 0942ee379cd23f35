export { createApiKeys } from './api-keys.ts'
export { matchIn } from './persons.ts'
export { createClientDocuments, mcpUpstreamOf } from './client-documents.ts'
export type {
  ConnectionFilter,
  ConnectionList,
  ConnectionHeader,
  ConnectionsConfig,
  ConnectionService,
  ListFilter,
} from './service.ts'
export { openConnections } from './service.ts'
// Loaded together with the connections.
export { createEphemeralKeys } from '../signing/index.ts'
