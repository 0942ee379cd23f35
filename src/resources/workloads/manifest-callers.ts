import { PROXY_DEFAULTS, authSection, type ManifestProvider, type ManifestSection } from '../auth-section.ts'
import { once, isRecord } from '../../fields/index.ts'
import { oidcConfig, type InlineOidc, type KubernetesOidc, type OidcConfig } from './oidc-callers.ts'

type Path = readonly PropertyKey[]

/** A field that says who may call, and that is not honoured here. */
export interface Dishonoured {
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
  urlPath(index: number, field: 'issuerUrl' | 'jwksUrl' | 'introspectionUrl'): Path
  readonly resourceUrl: string | undefined
  readonly dishonoured: readonly Dishonoured[]
}

/** Fields of manifests that restrict callers in ways that nothing here can; each by its name. */
export const DISHONOURED_FIELDS: Readonly<Record<string, string>> = {
  oidcConfigRef: 'refers to an object that is not read here',
  authzConfig: 'holds policies that are not evaluated here',
  authzConfigRef: 'refers to policies that are not evaluated here',
  toolConfigRef: 'filters tools, which is not done here',
}

/** What ToolHive's operator takes where a manifest names no audience. */
const CLUSTER_AUDIENCE = 'toolhive'
const CLUSTER_ISSUER = 'https://kubernetes.default.svc'
/** Where a kubelet puts what a pod is to the API server. */
const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount'

interface Written {
  readonly auth?: ManifestSection | undefined
  readonly oidcConfig?: OidcConfig | undefined
  readonly [field: string]: unknown
}

/**
 * Who may call a workload, by the part of its document at `base` (`spec`, or `spec.incomingAuth` of a VirtualMCPServer):
 * its `auth` section; else its `oidcConfig` as a provider of such a section (decisions §1).
 */
export function manifestCallers(written: Written, base: Path, namespace: string): ManifestCallers {
  const dishonoured: Dishonoured[] = Object.entries(DISHONOURED_FIELDS).flatMap(([field, reason]) =>
    written[field] === undefined ? [] : [{ path: [...base, field], reason }],
  )
  const { auth, oidcConfig: oidc } = written
  if (auth !== undefined || oidc === undefined) {
    const path = [...base, 'auth']
    return {
      section: auth,
      path,
      urlPath: (index, field) => [...path, 'oauth', 'providers', index, field],
      resourceUrl: auth?.mode === 'oauth' ? auth.oauth.resourceUrl : undefined,
      dishonoured,
    }
  }
  const path = [...base, 'oidcConfig']
  const found = providerOf(oidc, namespace)
  dishonoured.push(...found.dishonoured.map(({ path: inner, reason }) => ({ path: [...path, ...inner], reason })))
  const { provider, scopesSupported } = found
  return {
    section: provider === undefined ? undefined : sectionOf(provider, scopesSupported, oidc.resourceUrl),
    path,
    urlPath: (_index, field) => [...path, oidc.type, field === 'issuerUrl' ? 'issuer' : field],
    resourceUrl: oidc.resourceUrl,
    dishonoured,
  }
}

interface Found {
  readonly provider?: ManifestProvider
  readonly scopesSupported?: readonly string[] | undefined
  readonly dishonoured: readonly Dishonoured[]
}

function providerOf(oidc: OidcConfig, namespace: string): Found {
  const unknown = unknownFields(oidc, known().own, [])
  switch (oidc.type) {
    case 'configMap':
      return { dishonoured: [...unknown, { path: [], reason: 'refers to a ConfigMap that is not read here' }] }
    case 'inline': {
      const { inline } = oidc
      // The schema has made sure of it.
      return inline === undefined ? { dishonoured: unknown } : inlineProvider(inline, unknown)
    }
    default:
      return clusterProvider(oidc.kubernetes ?? {}, namespace, unknown)
  }
}

function inlineProvider(inline: InlineOidc, unknown: readonly Dishonoured[]): Found {
  const dishonoured = [...unknown, ...unknownFields(inline, known().inline, ['inline'])]
  const { audience } = inline
  if (audience === undefined) {
    return {
      dishonoured: [...dishonoured, { path: ['inline'], reason: 'names no "audience", which tokens must have' }],
    }
  }
  const provider = {
    name: 'oidcConfig',
    issuerUrl: inline.issuer,
    audience,
    jwksUrl: inline.jwksUrl ?? inline.jwksURL,
    introspectionUrl: inline.introspectionUrl ?? inline.introspectionURL,
    clientId: inline.clientId ?? inline.clientID,
    clientSecretRef: inline.clientSecretRef,
    caBundleRef: inline.caBundleRef,
    caCertPath: inline.thvCABundlePath,
    authTokenFile: inline.jwksAuthTokenPath,
    allowPrivateIP: inline.jwksAllowPrivateIP === true || inline.protectedResourceAllowPrivateIP === true,
    insecureAllowHttp: (inline.insecureAllowHttp ?? inline.insecureAllowHTTP) === true,
  }
  return { provider, scopesSupported: inline.scopes, dishonoured }
}

/** The API server as identity provider: with the pod's own token and CA, at an address that is private. */
function clusterProvider(cluster: KubernetesOidc, namespace: string, unknown: readonly Dishonoured[]): Found {
  const { issuer = CLUSTER_ISSUER, audience = CLUSTER_AUDIENCE, serviceAccount, useClusterAuth = true } = cluster
  const jwksUrl = cluster.jwksUrl ?? cluster.jwksURL
  const dishonoured = [...unknown, ...unknownFields(cluster, known().kubernetes, ['kubernetes'])]
  if (serviceAccount === undefined && cluster.namespace !== undefined)
    dishonoured.push({ path: ['kubernetes', 'namespace'], reason: 'restricts nobody without "serviceAccount"' })
  const provider = {
    name: 'oidcConfig',
    issuerUrl: issuer,
    audience,
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
  return { provider, dishonoured }
}

/** What a field means that is not known can't be honoured: it may be what keeps others out. */
function unknownFields(object: object, known: ReadonlySet<string>, path: Path): Dishonoured[] {
  return Object.keys(object)
    .filter((name) => !known.has(name))
    .map((name) => ({ path: [...path, name], reason: 'is not known here' }))
}

/** Fields of each part of `oidcConfig`. */
const known = once(() => {
  const { inline, kubernetes, ...own } = oidcConfig().shape
  const namesOf = (schema: { unwrap(): { shape: object } }) => new Set(Object.keys(schema.unwrap().shape))
  return {
    own: new Set([...Object.keys(own), 'inline', 'kubernetes']),
    inline: namesOf(inline),
    kubernetes: namesOf(kubernetes),
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
