import { expect } from 'vitest'
import type { KubeClient, KubeObject } from '../../../src/kube/index.ts'
import { CLUSTER_TYPES } from '../../../src/operator/index.ts'
import { eventually } from './control-plane.ts'

/** The pods of a proxy, once there are as many as that. */
export const podsOf = (
  client: KubeClient,
  namespace: string,
  proxy: string,
  count = 1,
): Promise<readonly KubeObject[]> =>
  eventually(async () => {
    const labelSelector = `app.kubernetes.io/instance=${proxy}`
    const { items } = await client.list(CLUSTER_TYPES.Pod, { namespace, labelSelector })
    expect(items).toHaveLength(count)
    return items
  })

/** As a kubelet whose probes succeed: these pods run and are ready, at `podIP`. The Deployment's own controller counts them. */
export async function markReady(client: KubeClient, pods: readonly KubeObject[], podIP?: string): Promise<void> {
  const lastTransitionTime = new Date().toISOString().replace(/\.\d+/, '')
  const conditions = [{ type: 'Ready', status: 'True', lastTransitionTime }]
  const address = podIP === undefined ? {} : { podIP, podIPs: [{ ip: podIP }] }
  const status = { phase: 'Running', conditions, ...address }
  for (const { metadata } of pods)
    await client.merge(CLUSTER_TYPES.Pod, metadata.namespace, metadata.name, { status }, { subresource: 'status' })
}
