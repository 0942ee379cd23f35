import { stringify } from 'yaml'
import type { KubeObject } from '../../kube/index.ts'
import { WRITTEN_YAML } from '../../load/index.ts'
import { versionInFiles } from '../kinds.ts'
import { injectionConfigMapName } from './pod-patch.ts'

/** The ConfigMap with the config of injected pods; the config owns it. */
export function injectionConfigMap(config: KubeObject): KubeObject {
  const { apiVersion, kind, metadata, spec } = config
  const { name, namespace, uid = '' } = metadata
  const document = { apiVersion: versionInFiles(apiVersion), kind, metadata: { name, namespace }, spec }
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name: injectionConfigMapName(name),
      ...(namespace === undefined ? {} : { namespace }),
      labels: {
        'app.kubernetes.io/name': 'mcp-extauth',
        'app.kubernetes.io/component': 'sidecar',
        'app.kubernetes.io/managed-by': 'mcp-extauth-operator',
      },
      ownerReferences: [{ apiVersion, kind, name, uid, controller: true }],
    },
    data: { 'auth.yaml': stringify(document, WRITTEN_YAML) },
  }
}
