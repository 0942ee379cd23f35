import { DEFAULT_NAMESPACE, isRecord } from '../../fields/index.ts'

/** A pod, or the template of one, that says something in our group. */
export interface MarkedPod {
  readonly namespace: string
  /** Where it is in its document: empty for a pod. */
  readonly path: readonly string[]
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  readonly spec: unknown
}

/** Where the pod of each kind of the cluster is. */
const PATHS: Readonly<Record<string, readonly string[]>> = {
  Pod: [],
  PodTemplate: ['template'],
  CronJob: ['spec', 'jobTemplate', 'spec', 'template'],
  ...Object.fromEntries(
    ['Deployment', 'StatefulSet', 'DaemonSet', 'ReplicaSet', 'ReplicationController', 'Job'].map((kind) => [
      kind,
      ['spec', 'template'],
    ]),
  ),
}

/** The pod in a document of the cluster; undefined where nothing in it is of `apiGroup`. */
export function markedPod(document: Readonly<Record<string, unknown>>, apiGroup: string): MarkedPod | undefined {
  const { kind, metadata } = document
  const path = typeof kind === 'string' && Object.hasOwn(PATHS, kind) ? PATHS[kind] : undefined
  if (path === undefined) return undefined
  const pod = path.reduce<unknown>((at, step) => (isRecord(at) ? at[step] : undefined), document)
  if (!isRecord(pod) || !isRecord(pod['metadata'])) return undefined
  const labels = textsOf(pod['metadata']['labels'])
  const annotations = textsOf(pod['metadata']['annotations'])
  if (![...Object.keys(labels), ...Object.keys(annotations)].some((key) => key.startsWith(`${apiGroup}/`)))
    return undefined
  const namespace = isRecord(metadata) && typeof metadata['namespace'] === 'string' ? metadata['namespace'] : undefined
  return { namespace: namespace ?? DEFAULT_NAMESPACE, path, labels, annotations, spec: pod['spec'] }
}

const textsOf = (value: unknown): Record<string, string> =>
  isRecord(value)
    ? (Object.fromEntries(Object.entries(value).filter(([, text]) => typeof text === 'string')) as Record<
        string,
        string
      >)
    : {}
