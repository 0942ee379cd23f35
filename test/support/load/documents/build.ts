import { parseDocuments, type Loaded } from '../../../../src/load/index.ts'

const header = (kind: string, name: string, namespace: string | undefined) => ({
  apiVersion: 'extauth.dev/v1alpha1',
  kind,
  metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
})
const secret = { name: 'a', key: 'b' }

/** Specs of MCPExternalAuthConfig, the least that is valid. */
export const SPECS = {
  unauthenticated: { type: 'unauthenticated' },
  bearerToken: { type: 'bearerToken', bearerToken: { tokenSecretRef: secret } },
  headerInjection: { type: 'headerInjection', headerInjection: { headerName: 'X-Api-Key', valueSecretRef: secret } },
  tokenExchange: { type: 'tokenExchange', tokenExchange: { tokenUrl: 'https://idp.example.com/t', audience: 'b' } },
  cloudSts: {
    type: 'cloudSts',
    cloudSts: { region: 'eu-central-1', fallbackRoleArn: 'arn:aws:iam::123456789012:role/a' },
  },
  upstreamInject: { type: 'upstreamInject', upstreamInject: { providerName: 'github' } },
  embeddedAuthServer: {
    type: 'embeddedAuthServer',
    embeddedAuthServer: {
      issuer: 'https://auth.example.com',
      upstreamProviders: [{ name: 'a', type: 'oidc', oidcConfig: { issuerUrl: 'https://i', clientId: 'c' } }],
    },
  },
} as const

export const externalAuth = (spec: unknown, name = 'token', namespace?: string): object => ({
  ...header('MCPExternalAuthConfig', name, namespace),
  spec,
})

export const proxy = (spec: unknown, name = 'local', namespace?: string): object => ({
  ...header('ProxyConfig', name, namespace),
  spec,
})

export const workload = (kind: string, name: string, spec: unknown, namespace?: string): object => ({
  ...header(kind, name, namespace),
  spec,
})

/** Mode oauth with one provider. */
export const OAUTH = {
  mode: 'oauth',
  oauth: {
    resourceUrl: 'https://mcp.example.com',
    providers: [{ name: 'corp', issuerUrl: 'https://idp.example.com', audience: 'mcp' }],
  },
}

export const route = (more: object = {}): object => ({
  name: 'a',
  path: '/a',
  target: 'https://backend.example.com/mcp',
  externalAuthConfigRef: { name: 'token' },
  ...more,
})

/** The documents as one JSON file each, in `/etc/extauth`. */
export function load(...documents: readonly object[]): Loaded {
  return parseDocuments(
    documents.map((document, index) => ({ path: `/etc/extauth/${index}.json`, text: JSON.stringify(document) })),
  )
}
