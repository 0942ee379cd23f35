import { once, isRecord } from '../../fields/index.ts'
import {
  authSection,
  fieldsBelow,
  type InlineOidc,
  type KubernetesOidc,
  manifestOidc,
  type ManifestOidc,
  type ManifestProvider,
  type ManifestSection,
  type MCPOIDCConfig,
  oidcConfigRef,
  type OidcConfigRef,
  PROXY_DEFAULTS,
  WORKLOAD_FIELDS,
} from '../../resources/index.ts'
import { type FoundPolicies, policiesIn } from '../cedar/authz-config.ts'

type Path = readonly PropertyKey[]

/** Provider fields with a URL that is called. */
type ProviderUrl = 'issuerUrl' | 'jwksUrl' | 'introspectionUrl'

/** A field that restricts callers but is not supported. */
export interface UnsupportedCallerField {
  readonly path: Path
  /** The reason, as a clause without its subject. */
  readonly reason: string
  /** Set for Cedar policies. */
  readonly policies?: PolicySource
}

/** Cedar policies, or the object that has them. */
export type PolicySource =
  | { readonly found: FoundPolicies; readonly kind?: undefined }
  /** `key`: of a ConfigMap. */
  | { readonly kind: 'ConfigMap' | 'MCPAuthzConfig'; readonly name: string; readonly key?: string }

/** The callers defined by a manifest. */
export interface ManifestCallers {
  readonly section: ManifestSection | undefined
  /** The path of the section. */
  readonly path: Path
  /** The path of each provider URL, by provider and field. */
  urlPath(index: number, field: ProviderUrl): Path
  readonly resourceUrl: string | undefined
  /** The MCPOIDCConfig that the section is derived from, without another definition (`referencedCallers`). */
  readonly reference?: OidcConfigRef | undefined
  readonly unsupported: readonly UnsupportedCallerField[]
}

/** Manifest fields with unsupported restrictions of callers. */
const UNSUPPORTED_CALLER_FIELDS = fieldsBelow(WORKLOAD_FIELDS.MCPRemoteProxy, '', 'rejected').filter(
  ([, { isOverridable }]) => isOverridable === true,
)

/** The default audience of ToolHive's operator. */
const CLUSTER_AUDIENCE = 'toolhive'
const CLUSTER_ISSUER = 'https://kubernetes.default.svc'
/** Where the kubelet mounts the service account of a pod. */
const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount'

interface Written {
  readonly auth?: ManifestSection | undefined
  readonly oidcConfig?: ManifestOidc | undefined
  readonly oidcConfigRef?: OidcConfigRef | undefined
  readonly [field: string]: unknown
}

/**
 * The callers of a workload, from the part of its document at `base` (`spec`, or `spec.incomingAuth` of a
 * VirtualMCPServer): its `auth` section; else its `oidcConfig` as a provider of such a section (decisions §1), or the
 * referenced MCPOIDCConfig.
 */
export function manifestCallers(written: Written, base: Path, namespace: string): ManifestCallers {
  const unsupported: UnsupportedCallerField[] = UNSUPPORTED_CALLER_FIELDS.flatMap(([field, { details }]) =>
    written[field] === undefined
      ? []
      : [{ path: [...base, field], reason: details, ...policySource(field, written[field]) }],
  )
  const { auth, oidcConfig: oidc, oidcConfigRef: reference } = written
  if (auth === undefined && oidc === undefined && reference !== undefined) {
    const path = [...base, 'oidcConfigRef']
    unsupported.push(...unknownFields(reference, known().reference, path))
    // The URLs are in the other document, which is validated separately.
    return { section: undefined, path, urlPath: () => path, resourceUrl: reference.resourceUrl, reference, unsupported }
  }
  if (auth !== undefined || oidc === undefined) {
    const path = [...base, 'auth']
    return {
      section: auth,
      path,
      urlPath: (index, field) => [...path, 'oauth', 'providers', index, field],
      resourceUrl: auth?.mode === 'oauth' ? auth.oauth.resourceUrl : undefined,
      unsupported,
    }
  }
  const path = [...base, 'oidcConfig']
  const found = providerOf(oidc, namespace)
  unsupported.push(...found.unsupported.map(({ path: inner, reason }) => ({ path: [...path, ...inner], reason })))
  const { provider, scopesSupported } = found
  return {
    section: provider === undefined ? undefined : sectionOf(provider, scopesSupported, oidc.resourceUrl),
    path,
    urlPath: (_index, field) => [...path, oidc.type, field === 'issuerUrl' ? 'issuer' : field],
    resourceUrl: oidc.resourceUrl,
    unsupported,
  }
}

/** The default key of a ConfigMap with policies. */
const POLICY_KEY = 'authz.json'

function policySource(field: string, value: unknown): { readonly policies?: PolicySource } {
  if (!isRecord(value)) return {}
  const { configMap } = value
  if (field === 'authzConfigRef') return typeof value.name === 'string' ? refers('MCPAuthzConfig', value.name) : {}
  if (value.type === 'configMap' && isRecord(configMap) && typeof configMap.name === 'string')
    return refers('ConfigMap', configMap.name, typeof configMap.key === 'string' ? configMap.key : POLICY_KEY)
  const found = policiesIn(value)
  return found === undefined ? {} : { policies: { found } }
}

const refers = (kind: 'ConfigMap' | 'MCPAuthzConfig', name: string, key?: string) => ({
  policies: { kind, name, ...(key === undefined ? {} : { key }) },
})

interface Found {
  readonly provider?: ManifestProvider
  readonly scopesSupported?: readonly string[] | undefined
  readonly unsupported: readonly UnsupportedCallerField[]
}

function providerOf(oidc: ManifestOidc, namespace: string): Found {
  const unknown = unknownFields(oidc, known().own, [])
  switch (oidc.type) {
    case 'configMap':
      return { unsupported: [...unknown, { path: [], reason: 'refers to a ConfigMap that is not read here' }] }
    case 'inline': {
      const { inline } = oidc
      // The schema guarantees it.
      if (inline === undefined) return { unsupported: unknown }
      const unsupported = [...unknown, ...unknownFields(inline, known().inline, ['inline'])]
      const { audience } = inline
      if (audience === undefined) {
        const reason = 'names no "audience", which tokens must have'
        return { unsupported: [...unsupported, { path: ['inline'], reason }] }
      }
      return { provider: inlineProvider('oidcConfig', inline, audience), scopesSupported: inline.scopes, unsupported }
    }
    default: {
      const { kubernetes = {} } = oidc
      const unsupported = [...unknown, ...unknownFields(kubernetes, known().kubernetes, ['kubernetes'])]
      if (restrictsNobody(kubernetes))
        unsupported.push({ path: ['kubernetes', 'namespace'], reason: 'has no effect without "serviceAccount"' })
      const { audience = CLUSTER_AUDIENCE } = kubernetes
      return { provider: clusterProvider('oidcConfig', kubernetes, { audience, namespace }), unsupported }
    }
  }
}

/** The section derived from the referenced MCPOIDCConfig. */
export function referencedCallers(
  { audience, scopes, resourceUrl }: OidcConfigRef,
  { metadata: { name, namespace }, spec }: MCPOIDCConfig,
): ManifestSection {
  return sectionOf(providerIn(name, spec, { audience, namespace }), scopes, resourceUrl)
}

/** The provider of an MCPOIDCConfig, for any audience, and the paths of its URLs. */
export function describedProvider({ metadata: { name, namespace }, spec }: MCPOIDCConfig): {
  readonly provider: ManifestProvider
  readonly urlPath: (field: ProviderUrl) => Path
} {
  return {
    provider: providerIn(name, spec, { audience: 'any', namespace }),
    urlPath: (field) => ['spec', spec.type, field === 'issuerUrl' ? 'issuer' : field],
  }
}

const providerIn = (name: string, spec: MCPOIDCConfig['spec'], of: Described): ManifestProvider =>
  spec.inline === undefined
    ? clusterProvider(name, spec.kubernetesServiceAccount ?? {}, of)
    : inlineProvider(name, spec.inline, of.audience)

/** Settings that the provider itself does not define. */
interface Described {
  readonly audience: string
  readonly namespace: string
}

const restrictsNobody = ({ serviceAccount, namespace }: KubernetesOidc): boolean =>
  serviceAccount === undefined && namespace !== undefined

function inlineProvider(name: string, inline: InlineOidc, audience: string): ManifestProvider {
  return {
    name,
    issuerUrl: inline.issuer,
    audience,
    audienceClaim: inline.audienceClaim ?? 'aud',
    jwksUrl: inline.jwksUrl ?? inline.jwksURL,
    introspectionUrl: inline.introspectionUrl ?? inline.introspectionURL,
    clientId: inline.clientId ?? inline.clientID,
    clientSecretRef: inline.clientSecretRef,
    clientAuth: inline.clientAuth,
    caBundleRef: inline.caBundleRef,
    caCertPath: inline.thvCABundlePath,
    authTokenFile: inline.jwksAuthTokenPath,
    allowPrivateIP: inline.jwksAllowPrivateIP === true || inline.protectedResourceAllowPrivateIP === true,
    insecureAllowHttp: (inline.insecureAllowHttp ?? inline.insecureAllowHTTP) === true,
  }
}

/** The API server as identity provider: uses the pod's own token and CA, at a private address. */
function clusterProvider(name: string, cluster: KubernetesOidc, { audience, namespace }: Described): ManifestProvider {
  const { issuer = CLUSTER_ISSUER, serviceAccount, useClusterAuth = true } = cluster
  const jwksUrl = cluster.jwksUrl ?? cluster.jwksURL
  return {
    name,
    issuerUrl: issuer,
    audience,
    audienceClaim: 'aud',
    ...(serviceAccount === undefined
      ? {}
      : { subject: `system:serviceaccount:${cluster.namespace ?? namespace}:${serviceAccount}` }),
    introspectionUrl: cluster.introspectionUrl ?? cluster.introspectionURL,
    insecureAllowHttp: false,
    allowPrivateIP: useClusterAuth,
    // The API server has the keys of the cluster whatever its issuer is called, and returns them to authenticated
    // pods.
    jwksUrl: jwksUrl ?? (useClusterAuth ? `${CLUSTER_ISSUER}/openid/v1/jwks` : undefined),
    ...(useClusterAuth ? { caCertPath: `${SERVICE_ACCOUNT}/ca.crt`, authTokenFile: `${SERVICE_ACCOUNT}/token` } : {}),
  }
}

/** An unknown field cannot be supported: it may restrict callers. */
function unknownFields(object: object, known: ReadonlySet<string>, path: Path): UnsupportedCallerField[] {
  return Object.keys(object)
    .filter((name) => !known.has(name))
    .map((name) => ({ path: [...path, name], reason: 'is not supported' }))
}

/** Fields of each part of `oidcConfig`. */
const known = once(() => {
  const { inline, kubernetes, ...own } = manifestOidc().shape
  const namesOf = (schema: { unwrap(): { shape: object } }) => new Set(Object.keys(schema.unwrap().shape))
  return {
    own: new Set([...Object.keys(own), 'inline', 'kubernetes']),
    inline: namesOf(inline),
    kubernetes: namesOf(kubernetes),
    reference: new Set(Object.keys(oidcConfigRef().shape)),
  }
})

/** Building a schema takes a hundred times as long as using it. */
const proxySection = once(() => authSection(PROXY_DEFAULTS))

/** A section with one provider, with the defaults of a file. */
function sectionOf(
  provider: ManifestProvider,
  scopesSupported: readonly string[] | undefined,
  resourceUrl: string | undefined,
): ManifestSection {
  const template = proxySection().parse({
    oauth: {
      resourceUrl: resourceUrl ?? provider.issuerUrl,
      providers: [{ name: provider.name, issuerUrl: provider.issuerUrl, audience: provider.audience }],
      ...(scopesSupported === undefined ? {} : { scopesSupported }),
    },
  })
  if (template.mode !== 'oauth' || !isRecord(template.oauth)) throw new TypeError('the default mode is oauth')
  return { mode: 'oauth', oauth: { ...template.oauth, resourceUrl: resourceUrl ?? '', providers: [provider] } }
}
