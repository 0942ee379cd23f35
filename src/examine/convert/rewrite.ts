import { type Document, isMap, isScalar, isSeq, type YAMLMap } from 'yaml'
import { DEFAULT_API_GROUP, NEWEST_VERSION } from '../../load/index.ts'
import { CLIENT_PRESETS, WORKLOAD_KINDS, type WorkloadKind, whyNotRead } from '../../resources/index.ts'

/** A field with a different name here. */
interface Renamed {
  readonly kind: string
  /** Below `spec`; `*` is every item of a list. */
  readonly path: readonly string[]
  readonly to: string
  /** Its implicit value there. */
  readonly preset?: readonly [field: string, value: string]
}

const AUTH_SERVERS: readonly (readonly [kind: string, path: readonly string[]])[] = [
  ['MCPExternalAuthConfig', ['embeddedAuthServer']],
  ['VirtualMCPServer', ['authServerConfig']],
]
const RENAMED: readonly Renamed[] = [
  { kind: 'MCPRemoteProxy', path: ['proxyPort'], to: 'port' },
  { kind: 'MCPRemoteProxy', path: ['serviceAccount'], to: 'serviceAccountName' },
  { kind: 'MCPRemoteProxy', path: ['remoteURL'], to: 'remoteUrl' },
  { kind: 'MCPServerEntry', path: ['remoteURL'], to: 'remoteUrl' },
  { kind: 'MCPExternalAuthConfig', path: ['awsSts'], to: 'cloudSts', preset: ['service', 'aws-mcp'] },
  ...AUTH_SERVERS.map(([kind, path]) => ({ kind, path: [...path, 'storage', 'redis'], to: 'kvstore' })),
]
/** Values with a different name here. */
const REVALUED = [
  { kind: 'MCPExternalAuthConfig', path: ['type'], from: 'awsSts', to: 'cloudSts' },
  ...AUTH_SERVERS.map(([kind, path]) => ({ kind, path: [...path, 'storage', 'type'], from: 'redis', to: 'kvstore' })),
]

/**
 * Converts a document in place and returns one sentence per change. Restrictions stay as written, so that the proxy
 * rejects them by name.
 */
export function rewrite(document: Document, kind: string, logsIn: (config: string) => boolean | undefined): string[] {
  const changes: string[] = []
  const version = `${DEFAULT_API_GROUP}/${NEWEST_VERSION}`
  const before = document.get('apiVersion')
  if (before !== version) {
    document.set('apiVersion', version)
    changes.push(`apiVersion was ${String(before)}`)
  }
  changes.push(...leaveOutExported(document))
  const spec = document.get('spec')
  if (!isMap(spec)) return changes
  for (const { path, from, to } of REVALUED.filter((one) => one.kind === kind)) {
    if (document.getIn(['spec', ...path]) !== from) continue
    document.setIn(['spec', ...path], to)
    changes.push(`spec.${path.join('.')} was ${from}`)
  }
  for (const renamed of RENAMED.filter((one) => one.kind === kind)) changes.push(...rename(document, renamed))
  if (isOfOthers(before)) {
    changes.push(...writeOut(document, kind))
    if (kind === 'MCPRemoteProxy') changes.push(...writeCallers(document, logsIn), ...renameContainer(document))
  }
  const workload = WORKLOAD_KINDS.find((one) => one === kind)
  if (workload !== undefined) changes.push(...leaveOut(spec, workload))
  return changes
}

/** Server-side metadata: an API server rejects some of it, and a finalizer would block deletion. */
const OF_SERVERS = [
  'creationTimestamp',
  'deletionGracePeriodSeconds',
  'deletionTimestamp',
  'finalizers',
  'generation',
  'managedFields',
  'ownerReferences',
  'resourceVersion',
  'selfLink',
  'uid',
]
/** Marks by which Argo CD, Flux and Helm find their objects. They would delete a copy with them. */
const TRACKING = {
  labels: [
    'app.kubernetes.io/instance',
    'app.kubernetes.io/managed-by',
    'argocd.argoproj.io/instance',
    'helm.sh/chart',
    'helm.toolkit.fluxcd.io/name',
    'helm.toolkit.fluxcd.io/namespace',
    'kustomize.toolkit.fluxcd.io/name',
    'kustomize.toolkit.fluxcd.io/namespace',
  ],
  annotations: ['argocd.argoproj.io/tracking-id', 'meta.helm.sh/release-name', 'meta.helm.sh/release-namespace'],
} as const
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'

/** Removes fields that servers and controllers added to an exported object. Discovered backends in a status stay. */
function leaveOutExported(document: Document): string[] {
  const backends: unknown = document.getIn(['status', 'discoveredBackends'])
  const paths = [
    ...OF_SERVERS.map((name) => ['metadata', name]),
    ['metadata', 'annotations', LAST_APPLIED],
    ...(backends === undefined ? [['status']] : []),
  ].filter((path) => document.hasIn(path))
  const tracking = (['labels', 'annotations'] as const)
    .flatMap((where) => TRACKING[where].map((name) => ['metadata', where, name]))
    .filter((path) => document.hasIn(path))
  for (const path of [...paths, ...tracking]) document.deleteIn(path)
  for (const where of ['labels', 'annotations']) {
    const left: unknown = document.getIn(['metadata', where])
    if (tracking.length > 0 && isMap(left) && left.items.length === 0) document.deleteIn(['metadata', where])
  }
  return [
    ...paths.map((path) => `${path.join('.')} is omitted: set by a server`),
    ...tracking.map((path) => `${path.join('.')} is omitted: it marks objects of another tool`),
  ]
}

/** Fields that restrict callers. */
const CALLERS = ['auth', 'oidcConfig', 'oidcConfigRef', 'authServerRef']

/** Writes that callers need no token, if that was implicit. */
function writeCallers(document: Document, logsIn: (config: string) => boolean | undefined): string[] {
  const isWritten = (field: string): boolean => {
    const value = document.getIn(['spec', field])
    return value !== undefined && value !== null
  }
  if (CALLERS.some(isWritten)) return []
  const config: unknown = document.getIn(['spec', 'externalAuthConfigRef', 'name'])
  // The authorization server of a config authenticates callers; a config outside of the files is unknown.
  if (typeof config === 'string' && logsIn(config) !== false) return []
  document.setIn(['spec', 'auth'], document.createNode({ mode: 'anonymous' }))
  return ['spec.auth is the former default: callers need no token']
}

/** Renames the other proxy's container in a pod template, and removes its image. */
function renameContainer(document: Document): string[] {
  const path = ['spec', 'podTemplateSpec', 'spec', 'containers']
  const containers: unknown = document.getIn(path)
  if (!isSeq(containers)) return []
  return containers.items.flatMap((container, index) => {
    if (!isMap(container) || container.get('name') !== 'toolhive') return []
    container.set('name', 'extauth')
    const at = `${path.join('.')}[${index}]`
    const image = container.get('image')
    if (image === undefined) return [`${at}.name was toolhive`]
    container.delete('image')
    return [`${at}.name was toolhive`, `${at}.image is omitted: ${JSON.stringify(image)} is a different program`]
  })
}

const isOfOthers = (apiVersion: unknown): boolean => String(apiVersion).split('/')[0] !== DEFAULT_API_GROUP

/** Writes defaults of the other controller that differ here. */
function writeOut(document: Document, kind: string): string[] {
  return AUTH_SERVERS.flatMap(([its, path]) => {
    const at = ['spec', ...path]
    if (its !== kind || !isMap(document.getIn(at))) return []
    return CLIENT_PRESETS.flatMap(([field, value]) => {
      const before = document.getIn([...at, ...field])
      if (before !== undefined && before !== null) return []
      document.setIn([...at, ...field], value)
      return [`${[...at, ...field].join('.')} is the former default`]
    })
  })
}

function rename(document: Document, { path, to, preset }: Renamed): string[] {
  const parent = document.getIn(['spec', ...path.slice(0, -1)])
  const name = path.at(-1) ?? ''
  if (!isMap(parent) || !parent.has(name) || parent.has(to)) return []
  const pair = parent.items.find(({ key }) => isScalar(key) && key.value === name)
  if (pair === undefined || !isScalar(pair.key)) return []
  pair.key.value = to
  const changes = [`spec.${[...path.slice(0, -1), to].join('.')} was ${name}`]
  if (preset !== undefined && isMap(pair.value) && !pair.value.has(preset[0])) {
    pair.value.set(preset[0], preset[1])
    changes.push(`spec.${to}.${preset[0]} is the former default`)
  }
  return changes
}

/** Removes ignored fields. A status from another controller is not converted. */
function leaveOut(spec: YAMLMap, kind: WorkloadKind): string[] {
  const names = spec.items.flatMap(({ key }) => (isScalar(key) && typeof key.value === 'string' ? [key.value] : []))
  return names.flatMap((name) => {
    const why = whyNotRead(kind, name)
    // Some of its fields may be unsupported.
    if (why === undefined || (name === 'config' && kind === 'VirtualMCPServer')) return []
    spec.delete(name)
    return [`spec.${name} is omitted: ${why}`]
  })
}
