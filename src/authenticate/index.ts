export { createAuthenticator, type Authenticator } from './authenticator.ts'
export type { AuthenticateDeps, ProviderOutboundOptions } from './deps.ts'
export type { InProcessProvider } from './verify-in-process.ts'
export { isPublicPath } from './public-paths.ts'
export { probeProvider, type ProviderProbe } from './probe.ts'
export {
  protectedResourceMetadata,
  type ProtectedResourceMetadata,
  type ResourceMetadataOptions,
} from './resource-metadata.ts'
export { createRouteAuthenticate, refuseBoundToken, type RouteAuthenticateOptions } from './route-authenticate.ts'
export { unverifiedIn } from './unverified.ts'
