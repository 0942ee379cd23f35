import { z } from 'zod'
import { audienceClaim, introspectionClient, introspectionClientRules } from '../auth-section.ts'
import { caBundleRef } from '../ca-bundle.ts'
import {
  exclusive,
  goesWithType,
  withRules,
  filePath,
  httpUrl,
  objectName,
  namespaceName,
  scopes,
  secretRef,
} from '../../fields/index.ts'

/** Older spellings of fields; setting both spellings is an error. */
const SPELLINGS = {
  jwksUrl: 'jwksURL',
  introspectionUrl: 'introspectionURL',
  clientId: 'clientID',
  insecureAllowHttp: 'insecureAllowHTTP',
} as const

const bothSpellings = (...names: readonly (keyof typeof SPELLINGS)[]) =>
  names.map((name) => exclusive(name, SPELLINGS[name]))

/** The fields of an OpenID provider. */
export const inlineFields = () => ({
  issuer: httpUrl().describe('Must exactly match the iss claim of tokens.'),
  audienceClaim: audienceClaim().optional(),
  jwksUrl: httpUrl().optional().describe('JWKS endpoint; when set, discovery is skipped.'),
  introspectionUrl: httpUrl().optional().describe('Introspection endpoint; enables opaque tokens.'),
  clientId: clientId().describe('Client ID for introspection.'),
  clientSecretRef: secretRef().optional().describe('Client secret for introspection.'),
  ...introspectionClient(),
  caBundleRef: caBundleRef().optional().describe('CA certificates that replace the system roots.'),
  jwksAuthTokenPath: filePath('token')
    .optional()
    .describe('Token file that authenticates JWKS and introspection requests.'),
  jwksAllowPrivateIP: flag().describe('Allow connections to private addresses.'),
  protectedResourceAllowPrivateIP: flag().describe('The same.'),
  insecureAllowHTTP: flag().describe('Allow plain http beyond loopback and in-cluster names.'),
})

/** The fields of a cluster's service accounts. */
export const clusterFields = () => ({
  serviceAccount: objectName().optional().describe('Only this service account may call.'),
  namespace: namespaceName().optional().describe('Its namespace; that of the manifest when absent.'),
  issuer: httpUrl().optional().describe('Issuer of the cluster; https://kubernetes.default.svc when absent.'),
  jwksUrl: httpUrl().optional().describe('JWKS endpoint; that of the API server when absent.'),
  introspectionUrl: httpUrl().optional().describe('Introspection endpoint; enables opaque tokens.'),
  useClusterAuth: flag().describe("Use the pod's own token and the cluster's CA for the API server. Default true."),
})

const clientId = () => z.string().min(1).max(2048).optional()
const flag = () => z.boolean().optional()
const audience = () => z.string().min(1).max(2048).optional().describe('Expected aud claim of access tokens.')

/**
 * Callers of one OpenID provider. Unknown fields pass the schema: they are reported where this section decides who may
 * call.
 */
const inline = () =>
  withRules(
    z.looseObject({
      ...inlineFields(),
      audience: audience(),
      jwksURL: httpUrl().optional().describe('Another spelling.'),
      introspectionURL: httpUrl().optional().describe('Another spelling.'),
      clientID: clientId().describe('Another spelling.'),
      thvCABundlePath: filePath('certificates').optional().describe('The same as caBundleRef, as a file.'),
      insecureAllowHttp: flag().describe('Another spelling.'),
      scopes: scopes().optional().describe('Scopes advertised in the discovery document.'),
    }),
    [
      ...bothSpellings('jwksUrl', 'introspectionUrl', 'clientId', 'insecureAllowHttp'),
      exclusive('caBundleRef', 'thvCABundlePath'),
      ...introspectionClientRules(
        ['clientId', 'clientID', 'clientSecretRef'],
        ['introspectionUrl', 'introspectionURL'],
      ),
    ],
  )

/** An unknown field can't be honored: the cluster keeps it, so that it can be reported. */
const KEPT = { 'x-kubernetes-preserve-unknown-fields': true }

/** Callers are service accounts of the cluster. */
const kubernetes = () =>
  withRules(
    z.looseObject({
      ...clusterFields(),
      audience: audience(),
      jwksURL: httpUrl().optional().describe('Another spelling.'),
      introspectionURL: httpUrl().optional().describe('Another spelling.'),
    }),
    bothSpellings('jwksUrl', 'introspectionUrl'),
  )

const TYPES = ['kubernetes', 'configMap', 'inline'] as const

/** `oidcConfig` of a manifest: its accepted callers (decisions §1). */
export const oidcConfig = () =>
  withRules(
    z.looseObject({
      type: z.enum(TYPES).default('kubernetes').describe('Where the provider is described.'),
      resourceUrl: httpUrl().optional().describe('URL of the protected resource.'),
      inline: inline().meta(KEPT).optional().describe('Required when type is inline.'),
      kubernetes: kubernetes().meta(KEPT).optional().describe('Only with type kubernetes.'),
      configMap: z.looseObject({}).optional().describe('Only with type configMap, which is not read here.'),
    }),
    [
      goesWithType('inline', 'inline', TYPES, 'kubernetes'),
      {
        message: '"kubernetes" must be absent unless type is "kubernetes"',
        at: 'kubernetes',
        holds: ({ type = 'kubernetes', kubernetes: object }) => object === undefined || type === 'kubernetes',
        cel: "!has(self.kubernetes) || !has(self.type) || self.type == 'kubernetes'",
        json: {
          anyOf: [{ not: { required: ['kubernetes'] } }, { properties: { type: { const: 'kubernetes' } } }],
        },
      },
    ],
  ).meta(KEPT)
export type OidcConfig = z.output<ReturnType<typeof oidcConfig>>
export type InlineOidc = NonNullable<OidcConfig['inline']>
export type KubernetesOidc = NonNullable<OidcConfig['kubernetes']>

/**
 * `oidcConfigRef` of a workload: an MCPOIDCConfig of its namespace defines the accepted callers. Extends the
 * specification.
 */
export const oidcConfigRef = () =>
  z
    .looseObject({
      name: objectName().describe('Name of an MCPOIDCConfig in the same namespace.'),
      audience: z.string().min(1).max(2048).describe('Expected aud claim of access tokens.'),
      scopes: scopes().optional().describe('Scopes advertised in the discovery document.'),
      resourceUrl: httpUrl().optional().describe('URL of the protected resource.'),
    })
    .meta(KEPT)
export type OidcConfigRef = z.output<ReturnType<typeof oidcConfigRef>>
