import { Failure } from '../core/index.ts'
import type { KubeClient } from '../kube/index.ts'
import { CLUSTER_TYPES } from './kinds.ts'

/** The container of the operator in its own pod. */
const CONTAINER = 'operator'

/**
 * The image of the operator's own pod, the default for proxies. Throws `KubeError` if the pod cannot be read, and a
 * failure if it has no container `operator`.
 */
export async function imageOfPod(client: KubeClient, namespace: string, name: string): Promise<string> {
  const { spec } = await client.get(CLUSTER_TYPES.Pod, namespace, name)
  const { containers = [] } = (spec ?? {}) as { containers?: readonly { name?: string; image?: string }[] }
  const image = containers.find((container) => container.name === CONTAINER)?.image
  if (image === undefined)
    throw new Failure('config_error', { detail: `the pod "${name}" has no container "${CONTAINER}"; set --image` })
  return image
}
