export type { AuthServerConfig, AuthServerResource } from './config.ts'
export type { AuthServerDeps } from './deps.ts'
// Loaded together with the server.
export { createEphemeralKeys } from '../signing/index.ts'
export { openAuthServer, type AuthServer, type AuthServerReadiness } from './server.ts'
export type { NewUpstreamSession, UpstreamSessions } from './sessions/session.ts'
export { createUpstreamSessions, type UpstreamSessionsOptions } from './sessions/sessions.ts'
export { defaultRedirectUri } from './addresses.ts'
