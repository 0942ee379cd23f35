import { SIGNATURE_ALGORITHMS } from '../resources/index.ts'
import type { Addresses } from './addresses.ts'
import type { AuthMethod, GrantType } from './clients/client.ts'
import type { SigningKey } from '../signing/index.ts'
import type { ResourceNames } from './resource-names.ts'

/** The advertised capabilities of a server. */
export interface Offers {
  readonly grantTypes: readonly GrantType[]
  /** Profiles of RFC 7523 (draft-ietf-oauth-identity-assertion-authz-grant §6). */
  readonly grantProfiles: readonly string[]
  /** How its clients authenticate. */
  readonly authMethods: readonly AuthMethod[]
  /** Whether client ID metadata documents are supported. */
  readonly readsDocuments: boolean
}

export const ID_JAG_PROFILE = 'urn:ietf:params:oauth:grant-profile:id-jag'

/** The authorization server metadata (RFC 8414 §2). */
export function serverMetadata(
  addresses: Addresses,
  resources: ResourceNames,
  { grantTypes, grantProfiles, ...offers }: Offers,
): Record<string, unknown> {
  const algorithms = offers.authMethods.includes('private_key_jwt') ? SIGNATURE_ALGORITHMS : undefined
  // JSON omits undefined fields.
  const authMethods = {
    token_endpoint_auth_methods_supported: offers.authMethods,
    token_endpoint_auth_signing_alg_values_supported: algorithms,
    revocation_endpoint_auth_methods_supported: offers.authMethods,
    revocation_endpoint_auth_signing_alg_values_supported: algorithms,
  }
  return {
    issuer: addresses.issuer,
    authorization_endpoint: addresses.authorizeUrl,
    token_endpoint: addresses.tokenUrl,
    registration_endpoint: addresses.registerUrl,
    revocation_endpoint: addresses.revokeUrl,
    jwks_uri: addresses.jwksUrl,
    scopes_supported: [...resources.scopes],
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    grant_types_supported: grantTypes,
    ...(grantProfiles.length === 0 ? {} : { authorization_grant_profiles_supported: grantProfiles }),
    code_challenge_methods_supported: ['S256'],
    ...authMethods,
    authorization_response_iss_parameter_supported: true,
    client_id_metadata_document_supported: offers.readsDocuments,
  }
}

/**
 * The metadata as an OpenID provider configuration, for clients that read only that, with the fields that OpenID
 * Connect Discovery §3 requires. No ID token is ever issued (`openid` is not among the scopes); the algorithms are
 * those of the keys.
 */
export function openidConfiguration(
  metadata: Record<string, unknown>,
  keys: readonly SigningKey[],
): Record<string, unknown> {
  return {
    ...metadata,
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: [...new Set(keys.map(({ alg }) => alg))],
    // Absent, they would count as supported (OpenID Connect Discovery §3).
    request_uri_parameter_supported: false,
    claims_parameter_supported: false,
  }
}
