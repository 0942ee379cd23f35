import { createPublicKey } from 'node:crypto'
import { type Claims, Failure, type SecretHandle, type Secrets } from '../../core/index.ts'
import { parseGoDuration } from '../../fields/index.ts'
import type { ConfiguredClient } from '../../resources/index.ts'
import type { ResourceNames } from '../resource-names.ts'
import type { Client } from './client.ts'

/** Clients from the configuration. */
export interface ConfiguredClients {
  /** Undefined for an unknown identifier. Throws `secret_unavailable` while its secret is unreadable. */
  find(id: string): Client | undefined
}

/** Throws `config_error` for a resource that no route of this server has. */
export function createConfiguredClients(
  clients: readonly ConfiguredClient[],
  { resources, secrets }: { readonly resources: ResourceNames; readonly secrets: Secrets },
): ConfiguredClients {
  const byId = new Map(clients.map((client) => [client.clientId, prepare(client, resources, secrets)]))
  return { find: (id) => byId.get(id)?.() }
}

function prepare(spec: ConfiguredClient, resources: ResourceNames, secrets: Secrets): () => Client {
  const { clientId, clientSecretRef, jwksUrl, publicKeys, lifetime } = spec
  checkResources(`client ${clientId}`, spec.resources, resources)
  const secret: SecretHandle | undefined = clientSecretRef && secrets.handle(clientSecretRef)
  const keys = publicKeys?.map((pem): Claims => createPublicKey(pem).export({ format: 'jwk' }) as Claims)
  const client: Client = {
    id: clientId,
    kind: 'configured',
    name: undefined,
    redirectUris: [],
    authMethod: secret === undefined ? 'private_key_jwt' : 'client_secret_basic',
    grantTypes: spec.grantTypes,
    scope: undefined,
    applicationType: 'web',
    jwksUri: jwksUrl,
    jwks: keys && { keys },
    assertionAlgorithm: undefined,
    secretHash: undefined,
    issuedAt: 0,
    bounds: {
      resources: spec.resources,
      scopes: spec.scopes,
      lifetimeMs: lifetime === undefined ? undefined : parseGoDuration(lifetime),
    },
  }
  // The current value: a changed secret is used from then on.
  return () => (secret === undefined ? client : { ...client, secretHash: secret.current().digest() })
}

/** Configured resource names must exist; a typo would reject a caller at run time. Throws `config_error`. */
export function checkResources(whose: string, listed: readonly string[] | undefined, names: ResourceNames): void {
  const unknown = listed?.find((name) => names.find(name) === undefined)
  if (unknown === undefined) return
  throw new Failure('config_error', {
    detail: `${whose}: resource ${unknown} belongs to no route of this authorization server`,
  })
}
