import type { KubeObject } from '../../kube/index.ts'
import { once } from '../../fields/index.ts'
import { connections, connectionUrls, tracesUrl } from '../../resources/index.ts'
import { type Keys, keyRefsIn } from '../key-refs.ts'
import { storeNeeds } from '../store-needs.ts'
import { PATHS, type RemoteProxyFields } from './remote-proxy.ts'

/** The fields of an MCPRemoteProxy spec that the operator reads. Validated before; nothing here throws. */
export interface RemoteProxySpec {
  readonly fields: RemoteProxyFields
  readonly externalAuth: string | undefined
  readonly authServer: { readonly kind: string; readonly name: string } | undefined
  /** Name of the MCPOIDCConfig for its callers. */
  readonly oidcConfig: string | undefined
  /** Name of the MCPTelemetryConfig for its traces. */
  readonly telemetryConfig: string | undefined
  /** Name of the MCPToolConfig with the tools that callers may use. */
  readonly toolConfig: string | undefined
  readonly image: string | undefined
  /** Callers may have tokens, but no resource is named. */
  readonly lacksResource: boolean
  /** Keys of Secrets that it references directly, and of ConfigMaps with CA certificates. */
  readonly secretKeys: Keys
  readonly caBundleKeys: Keys
  /** It defines its callers inline. */
  readonly hasCallers: boolean
  readonly needsClusterToken: boolean
  readonly urls: readonly string[]
  readonly ports: readonly number[]
  /** Where its connections are kept; undefined without valid ones. */
  readonly connections: 'memory' | 'store' | undefined
  /** The fields that the proxy itself reads. */
  readonly routeFields: Readonly<Record<string, unknown>>
}

const DEFAULT_PORT = 8080
/** Fields about pods or the listener, which the ProxyConfig beside the manifest contains. */
const POD_FIELDS: ReadonlySet<string> = new Set([
  'replicas',
  'image',
  'resources',
  'podTemplateSpec',
  'serviceAccountName',
  'serviceAccount',
  'awsRoleArn',
  'sessionAffinity',
  'sessionKeySecretRef',
  'autoscaling',
  'resourceOverrides',
  'metricsFrom',
  'networkPolicy',
  'egress',
  'allowedOrigins',
  'port',
  'proxyPort',
  'externalURL',
  'gateway',
  'ingress',
])
export const API_SERVER = 'https://kubernetes.default.svc'

type Json = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)
const objectIn = (value: unknown): object | undefined => (isObject(value) ? value : undefined)
const numberIn = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined)
const textIn = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)
const secretIn = (value: unknown): RemoteProxyFields['sessionKey'] => {
  const [name, key] = isObject(value) ? [textIn(value['name']), textIn(value['key'])] : []
  return name === undefined || key === undefined ? undefined : { name, key }
}
const listIn = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

export function readRemoteProxySpec(object: KubeObject): RemoteProxySpec {
  const spec: Json = isObject(object.spec) ? object.spec : {}
  const callers = [spec['auth'], spec['oidcConfig']].filter((part) => part !== undefined && part !== null)
  const authServer = isObject(spec['authServerRef']) ? spec['authServerRef'] : undefined
  const sessionKey = secretIn(spec['sessionKeySecretRef'])
  const accounts = connectionNeeds(spec['connections'])
  // `kubernetes` is the default type of a section (decisions §1).
  const isCluster = isObject(spec['oidcConfig']) && (spec['oidcConfig']['type'] ?? 'kubernetes') === 'kubernetes'
  return {
    fields: {
      port: numberIn(spec['port']) ?? numberIn(spec['proxyPort']) ?? DEFAULT_PORT,
      replicas: numberIn(spec['replicas']),
      resources: objectIn(spec['resources']),
      podTemplateSpec: objectIn(spec['podTemplateSpec']),
      serviceAccountName: textIn(spec['serviceAccountName']) ?? textIn(spec['serviceAccount']),
      awsRoleArn: textIn(spec['awsRoleArn']),
      sessionAffinity: textIn(spec['sessionAffinity']) ?? (sessionKey === undefined ? 'ClientIP' : 'None'),
      sessionKey,
      autoscaling: isObject(spec['autoscaling'])
        ? (spec['autoscaling'] as unknown as RemoteProxyFields['autoscaling'])
        : undefined,
      overrides: isObject(spec['resourceOverrides']) ? spec['resourceOverrides'] : {},
      metricsFrom: listIn(spec['metricsFrom']).filter(isObject),
      networkPolicy: isObject(spec['networkPolicy']) ? spec['networkPolicy'] : {},
      egress: listIn(spec['egress']).filter(isObject),
      externalUrl: textIn(spec['externalURL']),
      gateway: isObject(spec['gateway']) ? (spec['gateway'] as unknown as RemoteProxyFields['gateway']) : undefined,
      ingress: isObject(spec['ingress']) ? (spec['ingress'] as unknown as RemoteProxyFields['ingress']) : undefined,
      allowedOrigins: listIn(spec['allowedOrigins']).filter((origin) => typeof origin === 'string'),
    },
    externalAuth: isObject(spec['externalAuthConfigRef']) ? textIn(spec['externalAuthConfigRef']['name']) : undefined,
    authServer:
      authServer === undefined
        ? undefined
        : { kind: textIn(authServer['kind']) ?? 'MCPExternalAuthConfig', name: textIn(authServer['name']) ?? '' },
    oidcConfig: isObject(spec['oidcConfigRef']) ? textIn(spec['oidcConfigRef']['name']) : undefined,
    telemetryConfig: isObject(spec['telemetryConfigRef']) ? textIn(spec['telemetryConfigRef']['name']) : undefined,
    toolConfig: isObject(spec['toolConfigRef']) ? textIn(spec['toolConfigRef']['name']) : undefined,
    image: textIn(spec['image']),
    lacksResource: lacksResource(spec),
    ...keyRefsIn([
      ...callers,
      spec['headerForward'],
      spec['connections'],
      spec['caBundleRef'],
      { sessionKeySecretRef: spec['sessionKeySecretRef'] },
    ]),
    hasCallers: callers.length > 0,
    needsClusterToken: isCluster || JSON.stringify(callers).includes(PATHS.cluster),
    urls: [
      ...[spec['remoteUrl'], spec['remoteURL']].flatMap((url) => textIn(url) ?? []),
      ...callers.flatMap((part) => urlsIn(part)),
      ...(isCluster ? [API_SERVER] : []),
      ...(isObject(spec['telemetry']) ? receiversIn(spec['telemetry']['openTelemetry']) : []),
      ...accounts.urls,
    ],
    ports: accounts.ports,
    connections: accounts.storage,
    routeFields: Object.fromEntries(Object.entries(spec).filter(([name]) => !POD_FIELDS.has(name))),
  }
}

const connectionsSection = once(connections)
/** Port of authorization servers that are discovered later; other ports by `spec.egress`. */
const HTTPS_PORT = 443

interface ConnectionNeeds extends Pick<RemoteProxySpec, 'urls' | 'ports'> {
  readonly storage?: RemoteProxySpec['connections']
}

/** By section: the observed state keeps the same object, and parsing takes a millisecond. */
const knownNeeds = new WeakMap<object, ConnectionNeeds>()

function connectionNeeds(section: unknown): ConnectionNeeds {
  if (!isObject(section)) return { urls: [], ports: [] }
  const needs = knownNeeds.get(section) ?? readConnectionNeeds(section)
  knownNeeds.set(section, needs)
  return needs
}

function readConnectionNeeds(section: object): ConnectionNeeds {
  const { data } = connectionsSection().safeParse(section)
  if (data === undefined) return { urls: [], ports: [] }
  const { login, providers, storage } = data
  const { storeUrls, storePorts } = storeNeeds(storage)
  return {
    urls: [
      ...login.map(({ issuerUrl }) => issuerUrl),
      ...providers.flatMap(({ oidcConfig }) => oidcConfig?.issuerUrl ?? []),
      ...connectionUrls(data).map(({ url }) => url),
      ...storeUrls,
    ],
    ports: [...storePorts, ...(providers.some(({ type }) => type === 'mcp') ? [HTTPS_PORT] : [])],
    storage: storage?.type === 'kvstore' ? 'store' : 'memory',
  }
}

function lacksResource(spec: Json): boolean {
  const [auth, oidcConfig, reference] = [spec['auth'], spec['oidcConfig'], spec['oidcConfigRef']].map((part) =>
    isObject(part) ? part : {},
  )
  const oauth = isObject(auth?.['oauth']) ? auth['oauth'] : {}
  if (auth?.['mode'] === 'anonymous') return false
  return [spec, oauth, oidcConfig, reference].every((part) => textIn(part?.['resourceUrl']) === undefined)
}

/** The receiver in `openTelemetry`, if it is enabled. */
export function receiversIn(openTelemetry: unknown): string[] {
  if (!isObject(openTelemetry) || openTelemetry['enabled'] !== true) return []
  const endpoint = textIn(openTelemetry['endpoint'])
  const url = endpoint === undefined ? undefined : tracesUrl(endpoint, openTelemetry['insecure'] === true)
  return url === undefined ? [] : [url.href]
}

/** Every called URL; identifiers of resources are excluded. */
export function urlsIn(value: unknown, field = ''): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => urlsIn(item, field))
  if (isObject(value)) return Object.entries(value).flatMap(([name, inner]) => urlsIn(inner, name))
  if (typeof value !== 'string' || !/^https?:\/\//.test(value)) return []
  return /^(issuer|issuerUrl|jwksU(rl|RL)|introspectionU(rl|RL))$/.test(field) ? [value] : []
}
