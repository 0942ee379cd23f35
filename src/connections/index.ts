export type { ConnectionFilter, ConnectionHeader, ConnectionsConfig, ConnectionService } from './service.ts'
export { openConnections } from './service.ts'
// Loaded together with the connections.
export { createEphemeralKeys } from '../signing/index.ts'
