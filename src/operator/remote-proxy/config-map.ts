import { createHash } from 'node:crypto'
import { stringify } from 'yaml'
import { REVISION_ANNOTATION } from '../../fields/index.ts'
import type { KubeObject } from '../../kube/index.ts'
import { WRITTEN_YAML } from '../../load/index.ts'
import { canonicalJson } from '../../resources/index.ts'
import { isShared, type SharedKind, versionInFiles } from '../kinds.ts'
import { shortened } from '../names.ts'
import { adminPortOf, owned, PATHS, type RemoteProxy } from './remote-proxy.ts'

/**
 * The documents for the pods of a proxy, as files of one ConfigMap: a ProxyConfig (listener, callers), the manifest
 * of the proxy (its route), and each referenced config.
 */
export function configMapOf(proxy: RemoteProxy): KubeObject {
  return owned(proxy, 'v1', 'ConfigMap', { data: filesOf(proxy) })
}

/** Keys of the ConfigMap that the operator did not write: pods would read them as configuration. */
export function unexpectedKeys(wanted: KubeObject, observed: KubeObject | undefined): string[] {
  const wantedKeys = new Set(Object.keys(wanted.data ?? {}))
  const found = [observed?.data, observed?.['binaryData']].flatMap((data) => Object.keys(data ?? {}))
  return [...new Set(found)].filter((key) => !wantedKeys.has(key))
}

/** The documents for the pods. */
export const documentsOf = (proxy: RemoteProxy): object[] => [
  proxyConfigOf(proxy),
  withoutStatus(proxy.manifest),
  ...proxy.documents.map(withoutStatus),
]

/** All but the manifest of the proxy. */
export const documentsBeside = (proxy: RemoteProxy): object[] => [
  proxyConfigOf(proxy),
  ...proxy.documents.map(withoutStatus),
]

/** The revision of a configuration; pods report the one that they run. */
export const revisionOf = (proxy: RemoteProxy): string =>
  createHash('sha256')
    .update(canonicalJson(documentsOf(proxy)))
    .digest('hex')
    .slice(0, 16)

/** Maximum file name: keys of ConfigMaps have at most 253 characters. */
const MAX_FILE_NAME = 240

const PREFIXES: Readonly<Record<SharedKind, string>> = {
  MCPOIDCConfig: 'oidc',
  MCPTelemetryConfig: 'telemetry',
  MCPToolConfig: 'tools',
}

function filesOf(proxy: RemoteProxy): Record<string, string> {
  const [config, ...others] = documentsOf(proxy)
  const [route, ...auths] = others.map(yaml)
  const names = proxy.documents.map(({ kind, metadata }) => {
    return `${isShared(kind) ? PREFIXES[kind] : 'auth'}-${shortened(metadata.name, MAX_FILE_NAME)}.yaml`
  })
  return {
    'proxy.yaml': yaml(withRevision(config ?? {}, revisionOf(proxy))),
    'route.yaml': route ?? '',
    ...Object.fromEntries(names.map((name, at) => [name, auths[at] ?? ''])),
  }
}

const withRevision = ({ metadata, ...document }: { readonly metadata?: object }, revision: string): object => ({
  ...document,
  metadata: { ...metadata, annotations: { [REVISION_ANNOTATION]: revision } },
})

function proxyConfigOf(proxy: RemoteProxy): object {
  return {
    apiVersion: versionInFiles(proxy.object.apiVersion),
    kind: 'ProxyConfig',
    metadata: { name: proxy.name, namespace: proxy.namespace },
    spec: {
      listen: {
        address: `:${proxy.port}`,
        ...(proxy.allowedOrigins.length === 0 ? {} : { allowedOrigins: proxy.allowedOrigins }),
      },
      admin: { address: `:${adminPortOf(proxy)}` },
      secretsDirectory: PATHS.secrets,
      ...(proxy.sessionKey === undefined ? {} : { sessionKeySecretRef: proxy.sessionKey }),
      routes: [],
    },
  }
}

/** Removes everything that the server added. */
const withoutStatus = ({ apiVersion, kind, metadata, ...fields }: KubeObject): object => {
  const { status: _status, ...rest } = fields
  return {
    apiVersion: versionInFiles(apiVersion),
    kind,
    metadata: { name: metadata.name, namespace: metadata.namespace },
    ...rest,
  }
}

const yaml = (document: object): string => stringify(document, WRITTEN_YAML)
