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

type Path = readonly PropertyKey[]

/** Fields of a provider that are called. */
type ProviderUrl = 'issuerUrl' | 'jwksUrl' | 'introspectionUrl'

/** A field that says who may call, and that is not honoured here. */
export interface UnsupportedCallerField {
  readonly path: Path
  /** What is the matter, as a sentence without its subject. */
  readonly reason: string
}

/** What a manifest says about its callers. */
export interface ManifestCallers {
  readonly section: ManifestSection | undefined
  /** Where the section is written. */
  readonly path: Path
  /** Where the URLs of its providers are written, by provider and field. */
  urlPath(index: number, field: ProviderUrl): Path
  readonly resourceUrl: string | undefined
  /** The MCPOIDCConfig that says it, where nothing else does: the section is made of it (`referencedCallers`). */
  readonly reference?: OidcConfigRef | undefined
  readonly unsupported: readonly UnsupportedCallerField[]
}

/** Fields of manifests that restrict callers in ways that nothing here can; each by its name. */
const UNSUPPORTED_CALLER_FIELDS = fieldsBelow(WORKLOAD_FIELDS.MCPRemoteProxy, '', 'rejected').filter(
  ([, { isOverridable }]) => isOverridable === true,
)

/** What ToolHive's operator takes where a manifest names no audience. */
const CLUSTER_AUDIENCE = 'toolhive'
const CLUSTER_ISSUER = 'https://kubernetes.default.svc'
/** Where a kubelet puts what a pod is to the API server. */
const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount'

interface Written {
  readonly auth?: ManifestSection | undefined
  readonly oidcConfig?: ManifestOidc | undefined
  readonly oidcConfigRef?: OidcConfigRef | undefined
  readonly [field: string]: unknown
}

/**
 * Who may call a workload, by the part of its document at `base` (`spec`, or `spec.incomingAuth` of a VirtualMCPServer):
 * its `auth` section; else its `oidcConfig` as a provider of such a section (decisions §1), or the MCPOIDCConfig that it
 * refers to.
 */
export function manifestCallers(written: Written, base: Path, namespace: string): ManifestCallers {
  const unsupported: UnsupportedCallerField[] = UNSUPPORTED_CALLER_FIELDS.flatMap(([field, { says }]) =>
    written[field] === undefined ? [] : [{ path: [...base, field], reason: says }],
  )
  const { auth, oidcConfig: oidc, oidcConfigRef: reference } = written
  if (auth === undefined && oidc === undefined && reference !== undefined) {
    const path = [...base, 'oidcConfigRef']
    unsupported.push(...unknownFields(reference, known().reference, path))
    // URLs are those of the other document, where they are judged.
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
      // The schema has made sure of it.
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
        unsupported.push({ path: ['kubernetes', 'namespace'], reason: 'restricts nobody without "serviceAccount"' })
      const { audience = CLUSTER_AUDIENCE } = kubernetes
      return { provider: clusterProvider('oidcConfig', kubernetes, { audience, namespace }), unsupported }
    }
  }
}

/** The section that a reference means, made of the MCPOIDCConfig that it names. */
export function referencedCallers(
  { audience, scopes, resourceUrl }: OidcConfigRef,
  { metadata: { name, namespace }, spec }: MCPOIDCConfig,
): ManifestSection {
  return sectionOf(providerIn(name, spec, { audience, namespace }), scopes, resourceUrl)
}

/** The provider that an MCPOIDCConfig describes, for any audience, and where its URLs are written. */
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

/** What a provider does not say itself. */
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

/** The API server as identity provider: with the pod's own token and CA, at an address that is private. */
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
    // The API server has the keys of the cluster whatever its issuer is called, and shows them to who has a token.
    jwksUrl: jwksUrl ?? (useClusterAuth ? `${CLUSTER_ISSUER}/openid/v1/jwks` : undefined),
    ...(useClusterAuth ? { caCertPath: `${SERVICE_ACCOUNT}/ca.crt`, authTokenFile: `${SERVICE_ACCOUNT}/token` } : {}),
  }
}

/** What a field means that is not known can't be honoured: it may be what keeps others out. */
function unknownFields(object: object, known: ReadonlySet<string>, path: Path): UnsupportedCallerField[] {
  return Object.keys(object)
    .filter((name) => !known.has(name))
    .map((name) => ({ path: [...path, name], reason: 'is not known here' }))
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

/** To make a schema takes a hundred times as long as to use it. */
const proxySection = once(() => authSection(PROXY_DEFAULTS))

/** A section with one provider, and the defaults that it would have in a file. */
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
