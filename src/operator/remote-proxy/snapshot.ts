import type { KubeObject } from '../../kube/index.ts'
import { type Loading, NEWEST_VERSION, parseObjects, resolveProxy, withoutReferences } from '../../load/index.ts'
import { asWritten, formatProblems, validateObject, type ValidatedObject } from '../object-rules.ts'
import type { KnownConfigs, ValidConfig } from '../config/known-config.ts'
import type { KnownSharedConfig } from '../config/known-shared-configs.ts'
import { type Keys, mergedKeys } from '../key-refs.ts'
import type { OwnTypes, SharedKind } from '../kinds.ts'
import { instanceName, ownedName } from '../names.ts'
import type { Observed } from '../observed.ts'
import { DEFAULT_POD_SETTINGS, type PodSettings } from '../pod-settings.ts'
import type { SecretLookup } from '../secret-states.ts'
import { serviceKey, servicePorts } from '../service-ports.ts'
import { documentsBeside } from './config-map.ts'
import { OWNED_TYPES, type WantedObject } from './objects.ts'
import { hostsOf } from './network-policy.ts'
import { readRemoteProxySpec, type RemoteProxySpec } from './read-spec.ts'
import type { RemoteProxySnapshot, ReferenceState } from './reconcile-remote-proxy.ts'
import type { PodReport } from './pod-reports.ts'
import { podTemplateProblems } from './pod-template-patch.ts'
import { type RemoteProxy, serviceUrl } from './remote-proxy.ts'

/** Operator settings from outside the cluster. */
export interface SnapshotSettings {
  readonly apiGroup: string
  /** Default image of the pods. */
  readonly image: string
  /**
   * Rejects pod templates, service accounts, images and egress rules of proxies (their author could create arbitrary
   * pods).
   */
  readonly restrictPodTemplate: boolean
  /** Allows only references to Secrets with the label. */
  readonly secretsByLabel: boolean
  /** Properties of the cluster for pods. Default: those of most clusters. */
  readonly pods?: PodSettings | undefined
}

export interface SnapshotDeps {
  readonly observed: Pick<Observed, 'config' | 'namespaceImage' | 'owned' | 'service' | 'shared'>
  readonly known: KnownConfigs
  readonly knownShared: (object: KubeObject) => KnownSharedConfig
  readonly secretsOf: SecretLookup
  /** Reports of the ready pods of a proxy; absent: they are not polled. */
  readonly reportsOf?: ((namespace: string, instance: string) => readonly (PodReport | undefined)[]) | undefined
  readonly types: OwnTypes
  readonly settings: SnapshotSettings
  readonly now: Date
}

interface Reference {
  readonly state: ReferenceState
  readonly object: KubeObject | undefined
  readonly valid: Needs | undefined
}

interface ConfigReference extends Reference {
  readonly valid: ValidConfig | undefined
}

/** Requirements of a referenced object. */
interface Needs {
  readonly secretKeys: Keys
  readonly caBundleKeys?: Keys
  readonly urls: readonly string[]
  readonly storePorts?: readonly number[]
  readonly needsClusterToken?: boolean
  readonly needsPodIdentity?: boolean
}

/** The observed state of one proxy. */
export function remoteProxySnapshot(object: KubeObject, deps: SnapshotDeps): RemoteProxySnapshot {
  const { observed, settings } = deps
  const { name, namespace = 'default' } = object.metadata
  const spec = readRemoteProxySpec(object)
  const externalAuth = spec.externalAuth === undefined ? undefined : lookUp(spec.externalAuth, namespace, deps)
  const authServer = spec.authServer === undefined ? undefined : lookUpServer(spec.authServer, namespace, deps)
  const lookUpShared = (kind: SharedKind, one: string | undefined): Reference | undefined =>
    one === undefined ? undefined : sharedReference(kind, one, namespace, deps)
  const callers = lookUpShared('MCPOIDCConfig', spec.oidcConfig)
  const telemetry = lookUpShared('MCPTelemetryConfig', spec.telemetryConfig)
  const validated = validateProxy(object, spec, settings.apiGroup)
  const tools = lookUpShared('MCPToolConfig', spec.toolConfig)
  const problems = [...validated.problems, ...podProblems(object, spec, settings)]
  const references = [externalAuth, authServer, callers, telemetry, tools].filter(
    (reference) => reference !== undefined,
  )
  const proxy = proxyOf(object, spec, references, settings, observed)
  // The documents must start: a public address without a definition of callers does not.
  if (problems.length === 0 && references.every(({ state }) => state.is === 'valid'))
    problems.push(...startFindings(proxy, settings.apiGroup, validated.loaded).problems)
  const objectsNamed = (owned: string): WantedObject[] =>
    OWNED_TYPES.flatMap((type) => {
      const found = observed.owned(type, namespace, owned)
      return found === undefined ? [] : [{ type, object: found }]
    })
  return {
    object,
    type: deps.types.MCPRemoteProxy,
    wanted: problems.length > 0 ? { problems } : proxy,
    externalAuth: externalAuth?.state,
    authServer: authServer?.state,
    callers: callers?.state,
    telemetry: telemetry?.state,
    tools: tools?.state,
    secrets: deps.secretsOf(namespace, [...proxy.secretKeys.keys()]),
    sessions: sessionsOf([externalAuth, authServer]),
    connections: spec.connections,
    owned: objectsNamed(ownedName(name)),
    earlier: objectsNamed(instanceName(name)),
    reports: deps.reportsOf?.(namespace, instanceName(name)),
    now: deps.now,
  }
}

/**
 * Findings about an MCPRemoteProxy at admission, as in `validate`, with problems that prevent its pods from starting.
 * Referenced objects are reviewed separately, and callers that they define are not checked.
 */
export function reviewRemoteProxy(object: KubeObject, settings: SnapshotSettings): Findings {
  const spec = readRemoteProxySpec(object)
  const { apiGroup } = settings
  const { problems, warnings, loaded } = validateProxy(object, spec, apiGroup)
  const found = { problems: [...problems, ...podProblems(object, spec, settings)], warnings }
  const refers = spec.externalAuth !== undefined || spec.authServer !== undefined
  if (problems.length > 0 || (refers && !spec.hasCallers && spec.oidcConfig === undefined)) return found
  const { namespace = 'default' } = object.metadata
  const callers = spec.oidcConfig === undefined ? [] : [assumedCallers(spec.oidcConfig, namespace, apiGroup)]
  const start = startFindings(proxyOf(object, spec, callers, settings), apiGroup, withoutReferences(loaded))
  const isKnown = (problem: string): boolean => callers.length === 0 || !problem.startsWith('spec.connections.login')
  return {
    problems: [...found.problems, ...start.problems.filter(isKnown)],
    warnings: [...warnings, ...start.warnings.filter((warning) => warning.startsWith('spec.connections.storage:'))],
  }
}

/** Problems of the settings of the pods. */
const podProblems = (object: KubeObject, { fields }: RemoteProxySpec, settings: SnapshotSettings): string[] => [
  ...podTemplateProblems(fields.podTemplateSpec),
  ...(settings.restrictPodTemplate ? restrictedFields(object) : []),
]

/** A placeholder for an MCPOIDCConfig of that name: its content is reviewed separately. */
function assumedCallers(name: string, namespace: string, apiGroup: string): Reference {
  const object = {
    apiVersion: `${apiGroup}/${NEWEST_VERSION}`,
    kind: 'MCPOIDCConfig',
    metadata: { name, namespace },
    spec: { type: 'inline', inline: { issuer: 'https://issuer.invalid' } },
  }
  return { state: { is: 'valid', configHash: '' }, object, valid: undefined }
}

/** The object as its pods read it, with the default of `resourceUrl`, which is rejected only in an otherwise valid object. */
function validateProxy(object: KubeObject, spec: RemoteProxySpec, apiGroup: string): ValidatedObject {
  const { spec: written } = object
  const isRead = typeof written === 'object' && written !== null && !Array.isArray(written)
  const read = isRead ? { ...object, spec: { ...written, ...defaultResource(object, spec) } } : object
  const validated = validateObject(read, apiGroup)
  const ownProblems = validated.problems.filter((problem) => !problem.startsWith('spec.resourceUrl:'))
  return spec.lacksResource && ownProblems.length > 0 ? { ...validated, problems: ownProblems } : validated
}

interface Findings {
  readonly problems: readonly string[]
  readonly warnings: readonly string[]
}

/**
 * Problems with which `extauth proxy` would refuse to start, except files that are not mounted yet, and warnings.
 * `validated`: the parsed manifest, to which the other documents are added.
 */
function startFindings(proxy: RemoteProxy, apiGroup: string, validated: Loading): Findings {
  const loaded = parseObjects(documentsBeside(proxy), { apiGroup, references: true, into: validated })
  const { problems = [], warnings = [] } = resolveProxy(loaded, { namespace: proxy.namespace, inCluster: true })
  return { problems: formatProblems(problems), warnings: formatProblems(warnings) }
}

/** Fields that allow arbitrary containers, users or destinations. */
const RESTRICTED_FIELDS = [
  'podTemplateSpec',
  'serviceAccountName',
  'awsRoleArn',
  'image',
  'egress',
  'networkPolicy',
  'resourceOverrides',
  'ingress.annotations',
] as const

/** Pod settings of an MCPRemoteProxy that `--restrict-pod-template` rejects. */
export function restrictedFields(object: KubeObject): string[] {
  const { fields, image } = readRemoteProxySpec(object)
  const { env = [], imagePullSecrets = [] } = fields.overrides.proxyDeployment ?? {}
  const isUsed = {
    podTemplateSpec: fields.podTemplateSpec !== undefined,
    serviceAccountName: fields.serviceAccountName !== undefined,
    awsRoleArn: fields.awsRoleArn !== undefined,
    image: image !== undefined,
    egress: fields.egress.length > 0,
    // Controllers read their own configuration from them.
    'ingress.annotations': Object.keys(fields.ingress?.annotations ?? {}).length > 0,
    networkPolicy: Object.keys(fields.networkPolicy).length > 0,
    // Labels and annotations may belong to anyone; a variable can be an option of the proxy.
    resourceOverrides: env.length > 0 || imagePullSecrets.length > 0,
  }
  const used = RESTRICTED_FIELDS.filter((field) => isUsed[field])
  return used.map((field) => `spec.${field}: the operator runs with --restrict-pod-template, so it may not be set`)
}

function lookUp(name: string, namespace: string, { observed, known }: SnapshotDeps): ConfigReference {
  const object = observed.config(namespace, name)
  if (object === undefined) {
    const message = `there is no MCPExternalAuthConfig "${name}" in namespace "${namespace}"`
    return { state: { is: 'not_found', message }, object: undefined, valid: undefined }
  }
  const { problems, valid } = known.of(object)
  if (valid === undefined) {
    const message = `MCPExternalAuthConfig "${name}" is not valid: ${problems.join('; ')}`
    return { state: { is: 'invalid', message }, object, valid }
  }
  const { spec } = valid
  if (spec.type === 'embeddedAuthServer' && spec.embeddedAuthServer.upstreamProviders.length > 1) {
    const message = `"${name}" has ${spec.embeddedAuthServer.upstreamProviders.length} upstream providers, MCPRemoteProxy supports one; use a VirtualMCPServer`
    return { state: { is: 'too_many_upstreams', message }, object, valid }
  }
  return { state: { is: 'valid', configHash: valid.configHash }, object, valid }
}

function lookUpServer(
  { kind, name }: { readonly kind: string; readonly name: string },
  namespace: string,
  deps: SnapshotDeps,
): ConfigReference {
  if (kind !== 'MCPExternalAuthConfig') {
    const message = `authServerRef names a ${kind}, expected an MCPExternalAuthConfig`
    return { state: { is: 'wrong_kind', message }, object: undefined, valid: undefined }
  }
  const found = lookUp(name, namespace, deps)
  const type = found.valid?.spec.type
  if (type === undefined || type === 'embeddedAuthServer') return found
  const message = `"${name}" has type "${type}", expected "embeddedAuthServer"`
  return { ...found, state: { is: 'wrong_type', message } }
}

/** The reference for callers or telemetry. */
function sharedReference(
  kind: SharedKind,
  name: string,
  namespace: string,
  { observed, knownShared }: SnapshotDeps,
): Reference {
  const object = observed.shared(kind, namespace, name)
  if (object === undefined) {
    const message = `there is no ${kind} "${name}" in namespace "${namespace}"`
    return { state: { is: 'not_found', message }, object, valid: undefined }
  }
  const { problems, valid } = knownShared(object)
  if (valid !== undefined) return { state: { is: 'valid', configHash: valid.configHash }, object, valid }
  const message = `${kind} "${name}" is not valid: ${problems.join('; ')}`
  return { state: { is: 'invalid', message }, object, valid }
}

function proxyOf(
  object: KubeObject,
  spec: RemoteProxySpec,
  references: readonly Reference[],
  settings: SnapshotSettings,
  observed?: Pick<Observed, 'service' | 'namespaceImage'>,
): RemoteProxy {
  const valid = references.flatMap((reference) => (reference.valid === undefined ? [] : [reference.valid]))
  const secretKeys = [...valid, spec].reduce(
    (all, one) => mergedKeys(all, one.secretKeys),
    new Map<string, Set<string>>(),
  )
  const caBundleKeys = valid.reduce((all, one) => mergedKeys(all, one.caBundleKeys ?? new Map()), spec.caBundleKeys)
  const { name, namespace = 'default' } = object.metadata
  const urls = [...spec.urls, ...valid.flatMap((one) => one.urls)]
  const documents = new Map(
    references.flatMap(({ object: one }) => (one === undefined ? [] : [[`${one.kind}/${one.metadata.name}`, one]])),
  )
  return {
    object,
    name,
    namespace,
    ...spec.fields,
    image: spec.image ?? observed?.namespaceImage(namespace) ?? settings.image,
    manifest: { ...asWritten(object), spec: { ...spec.routeFields, ...defaultResource(object, spec) } },
    secretKeys,
    caBundleKeys,
    needsClusterToken: spec.needsClusterToken || valid.some((one) => one.needsClusterToken === true),
    needsPodIdentity: valid.some((one) => one.needsPodIdentity === true),
    urls,
    services: servicesOf(urls, namespace, observed),
    ports: [...spec.ports, ...valid.flatMap(({ storePorts = [] }) => storePorts)],
    pods: settings.pods ?? DEFAULT_POD_SETTINGS,
    documents: [...documents.values()].map(asWritten),
  }
}

function defaultResource({ metadata: { name, namespace = 'default' } }: KubeObject, spec: RemoteProxySpec): object {
  const { externalUrl, port } = spec.fields
  return spec.lacksResource ? { resourceUrl: externalUrl ?? serviceUrl({ name, namespace, port }) } : {}
}

function servicesOf(
  urls: readonly string[],
  namespace: string,
  observed: Pick<Observed, 'service'> | undefined,
): RemoteProxy['services'] {
  const found = hostsOf(urls).flatMap((host) => {
    const [of = '', name = ''] = serviceKey(host, namespace)?.split('/') ?? []
    const object = observed?.service(of, name)
    return object === undefined ? [] : [[host, servicePorts(object)] as const]
  })
  return new Map(found)
}

/** Session storage of the embedded authorization server among these configs. */
function sessionsOf(references: readonly (ConfigReference | undefined)[]): RemoteProxySnapshot['sessions'] {
  const servers = references.flatMap((reference) =>
    reference?.valid?.spec.type === 'embeddedAuthServer' ? [reference.valid.spec.embeddedAuthServer] : [],
  )
  if (servers.length === 0) return undefined
  return servers.some(({ storage }) => (storage?.type ?? 'memory') === 'memory') ? 'memory' : 'store'
}
