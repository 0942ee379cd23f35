import { z } from 'zod'
import { compileWhole } from '../cel/index.ts'
import {
  exclusive,
  type FoundContent,
  goDuration,
  goesWithType,
  headerName,
  httpUrl,
  injectable,
  int32,
  isRecord,
  markedContents,
  once,
  parseGoDuration,
  type Rule,
  scopes,
  SECRET_REFS,
  type SecretRef,
  secretRef,
  withRules,
} from '../fields/index.ts'
import { upstreamUrls } from './embedded-auth-server.ts'
import { localStorage } from './embedded-storage.ts'
import { unique } from './programs/grants-without-login.ts'
import type { CalledUrl } from './type-record.ts'
import { oneClientHere, upstreamClientFields } from './upstream/upstream-client.ts'
import { oauth2Config, oidcConfig, providerName, type UpstreamProvider } from './upstream/upstream-provider.ts'

/** Browser login for the callers of one issuer. */
const login = () =>
  withRules(
    z.strictObject({
      issuerUrl: httpUrl().describe('Issuer of callers, exactly as in their tokens; https unless it is loopback.'),
      ...upstreamClientFields(),
      scopes: scopes().default(['openid']).describe('Scopes requested.'),
      match: z
        .array(z.string().min(1).max(128))
        .min(1)
        .max(8)
        .default(['sub'])
        .describe(
          "Claims that must be equal in the ID token and in the caller's access token; Entra ID: `tid`, `oid`.",
        ),
      caBundleRef: secretRef('certificates')
        .optional()
        .describe('CA certificates (PEM) that replace the system roots.'),
      allowPrivateIP: z.boolean().default(false).describe('Allow private addresses.'),
    }),
    oneClientHere(),
  )

const TYPES = ['oidc', 'oauth2', 'secret', 'mcp'] as const

function isPattern(text: string): boolean {
  try {
    compileWhole(text)
    return true
  } catch {
    return false
  }
}

/** A personal API key, entered in a form. */
const secret = () =>
  withRules(
    z.strictObject({
      label: z.string().min(1).max(100).describe('Name of the field in the form, such as `API key`.'),
      helpUrl: httpUrl().optional().describe('Page on which people find or create their key.'),
      pattern: z
        .string()
        .min(1)
        .max(256)
        .refine(isPattern, { error: 'expected a regular expression (RE2) without excessive repetition' })
        .optional()
        .describe('Regular expression (RE2) that a key must match as a whole.'),
      test: withRules(
        z.strictObject({
          url: httpUrl().describe('Where a new key is tried with one GET request.'),
          header: headerName().min(1).default('Authorization').describe('Header with the key.'),
          prefix: z
            .string()
            .max(64)
            .regex(/^[\x20-\x7e]*$/, { error: 'expected printable ASCII' })
            .default('')
            .describe('Text before the key, such as `Bearer `.'),
          expect: z.array(int32(100, 599)).min(1).max(16).default([200]).describe('Statuses for a valid key.'),
        }),
        [injectable('header')],
      )
        .optional()
        .describe('Tries a key before it is stored; none when absent.'),
    }),
    [],
  )

/** A remote MCP server whose authorization server is discovered (connections.md §5). */
const mcp = () =>
  withRules(
    z.strictObject({
      ...upstreamClientFields(),
      clientMetadata: z
        .enum(['auto', 'none'])
        .default('auto')
        .describe(
          'auto: without clientId, the client is a metadata document of the proxy where the server supports it, else it is registered; none: it is registered.',
        ),
      scopes: scopes()
        .default([])
        .describe('Scopes requested; by default those of the challenge, else those of the metadata.'),
    }),
    [exclusive('clientId', 'clientAuth')],
  )

const fixedRedirect: Rule = {
  message: 'leave "redirectUri" out: it is {baseUrl}/connect/callback',
  at: 'redirectUri',
  holds: ({ redirectUri }) => redirectUri === undefined,
}

/** A service whose accounts users connect. */
const provider = () =>
  withRules(
    z.strictObject({
      name: providerName().describe('Unique, also among the upstream providers of authorization servers.'),
      displayName: z
        .string()
        .min(1)
        .max(60)
        .regex(/^[^\p{C}\p{Z}](?:[^\p{C}\p{Zl}\p{Zp}]*[^\p{C}\p{Z}])?$/u, {
          error: 'expected one line without control characters',
        })
        .optional()
        .describe('Name shown to people and clients, such as `GitHub`; the name when absent.'),
      type: z
        .enum(TYPES)
        .describe(
          'OpenID Connect with discovery, plain OAuth 2.0, a key that people enter in a form, or an MCP server that names its authorization server.',
        ),
      oidcConfig: withRules(oidcConfig(), [fixedRedirect]).optional().describe('Only with type oidc.'),
      oauth2Config: withRules(oauth2Config(), [fixedRedirect]).optional().describe('Only with type oauth2.'),
      secret: secret().optional().describe('Only with type secret.'),
      mcp: mcp().optional().describe('Only with type mcp; the MCP server is the target of the routes.'),
      caBundleRef: secretRef('certificates')
        .optional()
        .describe('CA certificates (PEM) that replace the system roots.'),
      allowPrivateIP: z
        .boolean()
        .default(false)
        .describe('Allow private addresses; loopback by a loopback name is always allowed.'),
      maxAge: goDuration()
        .prefault('0s')
        .describe('A connection ends after this time and must be made again; 0s: it lasts until it is revoked.'),
      listing: z
        .strictObject({ secretRef: secretRef('header value').describe('The credential.') })
        .optional()
        .describe('Credential for handshake, lists and pings of callers without a connection; never for calls.'),
    }),
    [
      goesWithType('oidcConfig', 'oidc', TYPES),
      goesWithType('oauth2Config', 'oauth2', TYPES),
      goesWithType('secret', 'secret', TYPES),
      goesWithType('mcp', 'mcp', TYPES),
    ],
  )

/** `spec.connections` of a ProxyConfig or an MCPRemoteProxy (connections.md §1). */
export const connections = () =>
  withRules(
    z.strictObject({
      baseUrl: httpUrl()
        .optional()
        .describe(
          'URL of the proxy for browsers; pages are below `/connect` and at `/connections`. Required unless the bind is loopback.',
        ),
      storage: localStorage().optional().describe('Where connections are kept; in memory when absent.'),
      keySecretRefs: z
        .array(secretRef('bytes'))
        .min(1)
        .max(16)
        .optional()
        .describe('Secrets that seal connections, at least 32 bytes each; the first seals, all open.'),
      login: z.array(login()).max(16).default([]).describe('How people prove who they are; one entry per issuer.'),
      providers: z.array(provider()).min(1).max(64).describe('Services at which accounts are connected.'),
      singleUser: z
        .boolean()
        .default(false)
        .describe('All connections belong to the local user; only on a loopback or Unix-socket bind.'),
    }),
    [
      unique('providers', 'name'),
      unique('login', 'issuerUrl'),
      {
        message: 'missing, storage of type "kvstore" or "file" needs it: no other process could open what is stored',
        at: 'keySecretRefs',
        holds: ({ storage: store, keySecretRefs }) =>
          keySecretRefs !== undefined || !isRecord(store) || (store['type'] ?? 'memory') === 'memory',
      },
      {
        message: 'storage of type "file" is for one user, expected "singleUser: true"',
        at: 'storage',
        holds: ({ storage: store, singleUser }) => !isRecord(store) || store['type'] !== 'file' || singleUser === true,
      },
    ],
  )

export type Connections = z.output<ReturnType<typeof connections>>
export type ConnectionProvider = Connections['providers'][number]

/** The upstream of a provider of type `oidc` or `oauth2`; undefined for other types. */
export const upstreamOfConnection = ({
  name,
  type,
  oidcConfig: oidc,
  oauth2Config: oauth2,
  caBundleRef,
  allowPrivateIP,
}: ConnectionProvider): UpstreamProvider | undefined =>
  type === 'secret' || type === 'mcp'
    ? undefined
    : { name, type, oidcConfig: oidc, oauth2Config: oauth2, caBundleRef, allowPrivateIP }

const section = once(connections)

/** Secrets in the settings of connections. */
export const secretsOfConnections = (spec: Connections): readonly FoundContent<SecretRef>[] =>
  markedContents<SecretRef>(section(), spec, SECRET_REFS)

/** URLs in the settings of providers; the proxy calls them, or redirects to them. */
export const connectionUrls = ({ providers }: Connections): CalledUrl[] =>
  providers.flatMap((provider, index) => [
    ...upstreamUrls(provider, index, 'providers'),
    ...(provider.secret?.test === undefined
      ? []
      : [
          {
            path: ['providers', index, 'secret', 'test', 'url'],
            url: provider.secret.test.url,
            insecureAllowHttp: undefined,
          },
        ]),
  ])

/** The OpenID provider of a `login` entry. */
export const upstreamOfLogin = (entry: Connections['login'][number]): UpstreamProvider => ({
  name: `login-${new URL(entry.issuerUrl).host}`,
  type: 'oidc',
  oidcConfig: {
    issuerUrl: entry.issuerUrl,
    clientId: entry.clientId,
    clientSecretRef: entry.clientSecretRef,
    clientAuth: entry.clientAuth,
    scopes: entry.scopes,
  },
  caBundleRef: entry.caBundleRef,
  allowPrivateIP: entry.allowPrivateIP,
})

/** Maximum age of a connection in milliseconds; Infinity: until it is revoked. */
export const maxAgeMs = ({ maxAge }: ConnectionProvider): number => parseGoDuration(maxAge) || Infinity
