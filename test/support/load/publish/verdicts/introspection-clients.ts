import type { CrdKind } from '../../../../../src/load/publish/index.ts'
import { CLIENTS, secret, WRONG_CLIENTS } from '../../../resources/examples-clients.ts'

type Json = { [name: string]: unknown }

const idp = { introspectionUrl: 'https://idp.example.com/introspect' }
const issuer = 'https://idp.example.com'
const remoteUrl = 'https://api.example.com/mcp'

/** Where manifests say who we are for introspection. */
const PLACES: readonly (readonly [CrdKind, (more: Json) => Json])[] = [
  ['MCPOIDCConfig', (more) => ({ type: 'inline', inline: { issuer, ...idp, ...more } })],
  [
    'MCPRemoteProxy',
    (more) => {
      const providers = [{ name: 'corp', issuerUrl: issuer, audience: 'mcp', ...idp, ...more }]
      return { remoteUrl, auth: { oauth: { resourceUrl: remoteUrl, providers } } }
    },
  ],
  [
    'MCPServerEntry',
    (more) => ({ remoteUrl, oidcConfig: { type: 'inline', inline: { issuer, audience: 'mcp', ...idp, ...more } } }),
  ],
]

const none = { method: 'none', clientId: 'us' }

/** Every client and every wrong one, in every place. */
export const INTROSPECTION_CLIENTS: readonly (readonly [CrdKind, what: string, spec: Json])[] = PLACES.flatMap(
  ([kind, specOf]) =>
    [
      ...[...CLIENTS, ...WRONG_CLIENTS].map(([name, clientAuth]) => [name, { clientAuth }] as const),
      ['a client said twice', { clientAuth: none, clientId: 'us' }] as const,
      ['a client said twice, by a secret', { clientAuth: none, clientSecretRef: secret }] as const,
      ['a client without introspection', { clientAuth: none, introspectionUrl: undefined }] as const,
    ].map(([name, more]) => [kind, `introspection with ${name}`, specOf(more)] as const),
)
