import { type Document, isMap, isScalar, isSeq, type YAMLMap } from 'yaml'
import { DEFAULT_API_GROUP, NEWEST_VERSION } from '../../load/index.ts'
import { CLIENT_PRESETS, WORKLOAD_KINDS, type WorkloadKind, whyNotRead } from '../../resources/index.ts'

/** A field of others that has another name here. */
interface Renamed {
  readonly kind: string
  /** Below `spec`; `*` is every item of a list. */
  readonly path: readonly string[]
  readonly to: string
  /** What it had there without being written. */
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
/** Values that have another name here. */
const REVALUED = [
  { kind: 'MCPExternalAuthConfig', path: ['type'], from: 'awsSts', to: 'cloudSts' },
  ...AUTH_SERVERS.map(([kind, path]) => ({ kind, path: [...path, 'storage', 'type'], from: 'redis', to: 'kvstore' })),
]

/**
 * Makes a document of ours of one that was written for another group, in place, and gives what was changed, a sentence each.
 * What restricts stays as it is written, so that it is refused by name and not lost.
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

/** Of metadata, what no person writes into a manifest: an API server refuses some of it, and a finalizer would stay for ever. */
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
/** By which Argo CD, Flux and Helm find what they have applied: a copy with them would be removed as theirs. */
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

/** Takes away what servers and controllers have added to an exported object; of a status, backends that were found stay. */
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
    ...paths.map((path) => `${path.join('.')} is left out: a server wrote it`),
    ...tracking.map((path) => `${path.join('.')} is left out: another tool finds its objects by it`),
  ]
}

/** Fields that say who may call a proxy. */
const CALLERS = ['auth', 'oidcConfig', 'oidcConfigRef', 'authServerRef']

/** Writes out that callers need no token, where that was so without a word. */
function writeCallers(document: Document, logsIn: (config: string) => boolean | undefined): string[] {
  const isWritten = (field: string): boolean => {
    const value = document.getIn(['spec', field])
    return value !== undefined && value !== null
  }
  if (CALLERS.some(isWritten)) return []
  const config: unknown = document.getIn(['spec', 'externalAuthConfigRef', 'name'])
  // Callers log in at an authorization server that is both; of one that is not among the files nothing is known.
  if (typeof config === 'string' && logsIn(config) !== false) return []
  document.setIn(['spec', 'auth'], document.createNode({ mode: 'anonymous' }))
  return ['spec.auth is what it was without being written: callers need no token']
}

/** The container of the other proxy in a pod template is the one of ours; another image is not for it. */
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
    return [`${at}.name was toolhive`, `${at}.image is left out: ${JSON.stringify(image)} is another program`]
  })
}

const isOfOthers = (apiVersion: unknown): boolean => String(apiVersion).split('/')[0] !== DEFAULT_API_GROUP

/** Writes out what fields meant there without being written, where they mean something else here. */
function writeOut(document: Document, kind: string): string[] {
  return AUTH_SERVERS.flatMap(([its, path]) => {
    const at = ['spec', ...path]
    if (its !== kind || !isMap(document.getIn(at))) return []
    return CLIENT_PRESETS.flatMap(([field, value]) => {
      const before = document.getIn([...at, ...field])
      if (before !== undefined && before !== null) return []
      document.setIn([...at, ...field], value)
      return [`${[...at, ...field].join('.')} is what it was without being written`]
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
    changes.push(`spec.${to}.${preset[0]} is what it was without being written`)
  }
  return changes
}

/** Takes away what nothing here reads; a status that others wrote is not ours to bring. */
function leaveOut(spec: YAMLMap, kind: WorkloadKind): string[] {
  const names = spec.items.flatMap(({ key }) => (isScalar(key) && typeof key.value === 'string' ? [key.value] : []))
  return names.flatMap((name) => {
    const why = whyNotRead(kind, name)
    // Part of it may be refused.
    if (why === undefined || (name === 'config' && kind === 'VirtualMCPServer')) return []
    spec.delete(name)
    return [`spec.${name} is left out: ${why}`]
  })
}
