import { readJsonObject } from '../../http/index.ts'
import { OAuthError } from '../oauth-error.ts'
import type { Client } from './client.ts'
import type { ClientDirectory } from './directory.ts'
import { type ServerCapabilities, readClientMetadata } from './metadata.ts'

/** The response to a registration (RFC 7591 §3.2.1). */
export interface RegisteredClient {
  readonly client_id: string
  readonly redirect_uris: readonly string[]
  readonly [name: string]: unknown
}

/** Size limit of a registration request in bytes. */
export const REGISTRATION_BYTES = 64 * 1024

/**
 * Handles a registration request (RFC 7591 §3), without registration access token. Throws `OAuthError` and the errors
 * of the directory.
 */
export async function registerClient(
  request: { readonly contentType: string | undefined; readonly body: Buffer },
  { clients, capabilities }: { readonly clients: ClientDirectory; readonly capabilities: ServerCapabilities },
): Promise<RegisteredClient> {
  const type = request.contentType?.split(';')[0]?.trim().toLowerCase()
  if (type !== 'application/json') throw new OAuthError('invalid_request', 'the content type must be application/json')
  const document = readJsonObject(request.body)
  if (document === undefined)
    throw new OAuthError('invalid_client_metadata', 'the body must be a JSON object with distinct names')
  const { client, secret } = await clients.register(
    readClientMetadata(document, { from: 'registration', ...capabilities }),
  )
  return {
    ...publicMetadata(client),
    ...(secret === undefined ? {} : { client_secret: secret.reveal(), client_secret_expires_at: 0 }),
  }
}

/** The client's metadata in RFC 7591 §2 form, without its secret. */
function publicMetadata(client: Client): RegisteredClient {
  const { name, scope, jwks, jwksUri, assertionAlgorithm } = client
  return {
    client_id: client.id,
    client_id_issued_at: client.issuedAt,
    ...(name === undefined ? {} : { client_name: name }),
    redirect_uris: client.redirectUris,
    grant_types: client.grantTypes,
    response_types: client.grantTypes.includes('authorization_code') ? ['code'] : [],
    token_endpoint_auth_method: client.authMethod,
    application_type: client.applicationType,
    ...(scope === undefined ? {} : { scope }),
    ...(jwksUri === undefined ? {} : { jwks_uri: jwksUri }),
    ...(jwks === undefined ? {} : { jwks }),
    ...(assertionAlgorithm === undefined ? {} : { token_endpoint_auth_signing_alg: assertionAlgorithm }),
  }
}
