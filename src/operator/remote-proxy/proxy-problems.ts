import type { KubeObject } from '../../kube/index.ts'
import { createKnownConfigs } from '../config/known-config.ts'
import { createKnownSharedConfigs } from '../config/known-shared-configs.ts'
import { isShared, ownTypes } from '../kinds.ts'
import { remoteProxySnapshot } from './snapshot.ts'

/**
 * Why the operator would make no pods for an MCPRemoteProxy beside these objects, each as `path: message`. What is wrong
 * with a config that it refers to is not repeated.
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
