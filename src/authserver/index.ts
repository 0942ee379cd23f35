export type { AuthServerConfig, AuthServerResource } from './config.ts'
export type { AuthServerDeps } from './deps.ts'
// Loaded with the server that they are for, and not before.
export { createEphemeralKeys } from '../signing/index.ts'
export { openAuthServer, type AuthServer, type AuthServerReadiness } from './server.ts'
export type { NewUpstreamSession, UpstreamSessions } from './sessions/session.ts'
export { createUpstreamSessions, type UpstreamSessionsOptions } from './sessions/sessions.ts'
export { defaultRedirectUri } from './addresses.ts'
