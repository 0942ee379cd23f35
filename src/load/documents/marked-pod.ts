import { DEFAULT_NAMESPACE, isRecord } from '../../fields/index.ts'

/** A pod or pod template with labels or annotations of the group. */
export interface MarkedPod {
  readonly namespace: string
  /** Where it is in its document: empty for a pod. */
  readonly path: readonly string[]
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  /** Unquoted numbers and flags among labels and annotations of the group; an API server rejects them. */
  readonly unquoted: readonly (readonly ['labels' | 'annotations', key: string])[]
  readonly spec: unknown
}

/** Path of the pod template in each kind. */
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

/** The pod in a Kubernetes document; undefined without anything of `apiGroup`. */
export function markedPod(document: Readonly<Record<string, unknown>>, apiGroup: string): MarkedPod | undefined {
  const { kind, metadata } = document
  const path = typeof kind === 'string' && Object.hasOwn(PATHS, kind) ? PATHS[kind] : undefined
  if (path === undefined) return undefined
  const pod = path.reduce<unknown>((at, step) => (isRecord(at) ? at[step] : undefined), document)
  if (!isRecord(pod) || !isRecord(pod['metadata'])) return undefined
  const { labels: written, annotations: noted } = pod['metadata']
  const labels = textsOf(written)
  const annotations = textsOf(noted)
  if (![...Object.keys(labels), ...Object.keys(annotations)].some((key) => key.startsWith(`${apiGroup}/`)))
    return undefined
  const namespace = isRecord(metadata) && typeof metadata['namespace'] === 'string' ? metadata['namespace'] : undefined
  const unquotedIn = (where: 'labels' | 'annotations', values: unknown) =>
    Object.entries(isRecord(values) ? values : {})
      .filter(([key, value]) => key.startsWith(`${apiGroup}/`) && isUnquoted(value))
      .map(([key]) => [where, key] as const)
  const unquoted = [...unquotedIn('labels', written), ...unquotedIn('annotations', noted)]
  return { namespace: namespace ?? DEFAULT_NAMESPACE, path, labels, annotations, unquoted, spec: pod['spec'] }
}

const isUnquoted = (value: unknown): value is number | boolean =>
  typeof value === 'number' || typeof value === 'boolean'

/** Strings by name. Unquoted scalars are converted, so that their values are validated as well. */
const textsOf = (value: unknown): Record<string, string> =>
  Object.fromEntries(
    Object.entries(isRecord(value) ? value : {}).flatMap(([key, text]) =>
      typeof text === 'string' || isUnquoted(text) ? [[key, String(text)]] : [],
    ),
  )
