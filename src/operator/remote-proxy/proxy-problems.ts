import type { KubeObject } from '../../kube/index.ts'
import { createKnownConfigs } from '../config/known-config.ts'
import { createKnownSharedConfigs } from '../config/known-shared-configs.ts'
import { isShared, ownTypes } from '../kinds.ts'
import { remoteProxySnapshot } from './snapshot.ts'

/**
 * Reasons for creating no pods for an MCPRemoteProxy with these objects, each as `path: message`. Problems of a
 * referenced config are not repeated.
 */
export function proxyProblems(
  proxy: KubeObject,
  objects: readonly KubeObject[],
  settings: { readonly apiGroup: string; readonly restrictPodTemplate: boolean },
): readonly string[] {
  const find = (kind: string, namespace: string, name: string): KubeObject | undefined =>
    objects.find(
      (one) => one.kind === kind && one.metadata.name === name && (one.metadata.namespace ?? 'default') === namespace,
    )
  const { apiGroup } = settings
  const { wanted, callers } = remoteProxySnapshot(proxy, {
    observed: {
      config: (namespace, name) => find('MCPExternalAuthConfig', namespace, name),
      shared: (kind, namespace, name) => (isShared(kind) ? find(kind, namespace, name) : undefined),
      owned: () => undefined,
      service: () => undefined,
      namespaceImage: () => undefined,
    },
    known: createKnownConfigs(apiGroup),
    knownShared: createKnownSharedConfigs(apiGroup),
    secretsOf: () => 'unknown',
    types: ownTypes(apiGroup),
    settings: { ...settings, image: 'mcp-extauth', secretsByLabel: false },
    now: new Date(0),
  })
  if (callers?.is === 'not_found') return [`spec.oidcConfigRef.name: ${callers.message}`]
  return 'problems' in wanted ? wanted.problems : []
}
