export { readCallback } from './callback.ts'
export { clientKeyProblem } from './client-assertion.ts'
export { type CredentialExpiry, credentialExpiries } from './credential-expiry.ts'
export { type ClockTolerance, clockTolerance } from './clock-tolerance.ts'
export { createClientAuthentication } from './client-authentication.ts'
export { createCertificatePair } from './client-certificate.ts'
export type { ClientEndpoint, ClientSettings, OAuthClient } from './client-settings.ts'
export { type ClientDeps, openClient } from './open-client.ts'
export {
  createDiscovery,
  createKeyDiscovery,
  createTokenEndpointDiscovery,
  type Discovery,
  discoveryUrls,
  endpointOf,
  unusableDocument,
  withAliases,
  authMethodsIn,
  isSecretInBody,
} from './discovery.ts'
export { type Asked, createDocuments, type Documents, expectOk, jsonAnswer, serviceOf } from './documents.ts'
export { valueAt } from './dot-path.ts'
export { postForm } from './form-post.ts'
export { lifetimeOf } from './freshness.ts'
export { readKeys, readKeySet, type VerificationKey } from './key-set.ts'
export { ID_JAG } from './id-jag.ts'
export { createKeyStore, type KeyStore, type KeyStoreOptions } from './key-store.ts'
export { createProviderClient, openIntrospectionClient, type ProviderClient } from './provider-client.ts'
export type { ProviderFiles, SecretFile } from './provider-file.ts'
export {
  type AuthorizationServer,
  type BearerChallenge,
  type DiscoveryContext,
  discoverResource,
  findAuthorizationServer,
  findProtectedResource,
  isSafeUrl,
  type ProtectedResource,
  readChallenge,
  type ResourceAccess,
} from './resource-discovery.ts'
export { grantedScopes, postRefresh, scopesIn } from './refresh.ts'
export {
  callerGrant,
  CODE_GRANT,
  errorOf,
  exchangeFailure,
  type Grant,
  mayHeal,
  meantBy,
  OWN_GRANT,
  REFRESH_GRANT,
  type RefusalRule,
  codeVerdict,
  type TokenRefusal,
} from './refusals.ts'
export {
  ALGORITHMS,
  lookAtSignature,
  SIGNATURE_RULES,
  type SignatureHeader,
  type SignatureLook,
  verifySignature,
} from './signature.ts'
export { jwtEndMs, jwtIssuedMs, jwtTypeOf, shapeOf, type TokenShape, type UnverifiedJwt } from './token-shape.ts'
export { askTokenEndpoint, isClientRefused, isNoTokenEndpoint } from './token-endpoint.ts'
export { MAX_LIFETIME_MS } from './token-values.ts'
export {
  type IssuedToken,
  readIssuedToken,
  readTokenResponse,
  type TokenRequestContext,
  type TokenResponse,
  type TokenResponseMapping,
  unusableToken,
} from './token-response.ts'
