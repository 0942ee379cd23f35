import type { KubeObject } from '../../kube/index.ts'
import { readCallers, type SidecarCallers } from '../injection/callers.ts'
import { injectionPatch } from '../injection/pod-patch.ts'
import { type InjectionRequest, readInjection, unclearLabel } from '../injection/request.ts'
import { mergedKeys } from '../key-refs.ts'
import type { PodKeys } from '../references.ts'
import type { AdmissionDecision, AdmissionRequest } from './review.ts'

/** Properties of a config for injection into a pod. */
export interface InjectableConfig {
  /** Keys of the Secrets that it references, by Secret. */
  readonly secretKeys: ReadonlyMap<string, ReadonlySet<string>>
  /** Why it cannot run as a sidecar; undefined if it can. */
  readonly problem: string | undefined
}

/** The objects that a pod references in its namespace; undefined if missing. */
export interface NamedByPod {
  readonly config: InjectableConfig | undefined
  /** The ConfigMap of its callers. */
  readonly callers: KubeObject | undefined
}

export interface MutateOptions {
  readonly keys: PodKeys
  readonly image: string
  /** See `InjectionSettings`. */
  readonly fixedUser?: boolean
  /** Why a Secret of the callers must not be referenced; empty if it may. */
  readonly barred?: (namespace: string, names: readonly string[]) => readonly string[]
}

/** The request of a pod, or a decision that needs no cluster state. */
export function readAsked(
  { object: pod }: AdmissionRequest,
  keys: PodKeys,
): { readonly wanted: InjectionRequest; readonly pod: KubeObject } | AdmissionDecision {
  if (pod === undefined) return { allowed: true }
  const read = readInjection(pod, keys)
  if (!read.wanted) {
    const warning = unclearLabel(pod.metadata.labels ?? {}, keys)
    return { allowed: true, ...(warning === undefined ? {} : { warnings: [warning] }) }
  }
  if (read.problems !== undefined) return { allowed: false, message: read.problems.join('\n') }
  return { wanted: read.request, pod }
}

/** Injects the sidecar into a pod that requests it, or rejects the pod with a message that names what is missing. */
export function decideInjection(
  {
    wanted,
    pod,
    namespace,
  }: { readonly wanted: InjectionRequest; readonly pod: KubeObject; readonly namespace: string },
  { config, callers: configMap }: NamedByPod,
  { keys, image, fixedUser = true, barred = () => [] }: MutateOptions,
): AdmissionDecision {
  const no = (message: string): AdmissionDecision => ({ allowed: false, message })
  if (config === undefined)
    return no(
      `the annotation ${keys.externalAuth} names "${wanted.config}", which does not exist in namespace "${namespace}"`,
    )
  if (config.problem !== undefined)
    return no(`the MCPExternalAuthConfig "${wanted.config}" cannot run as a sidecar: ${config.problem}`)
  if (configMap === undefined)
    return no(
      `the annotation ${keys.callers} names "${wanted.callers}", which does not exist in namespace "${namespace}"`,
    )
  const callers: SidecarCallers | { readonly problem: string } = readCallers(configMap)
  const problem = 'problem' in callers ? callers.problem : barred(namespace, [...callers.secretKeys.keys()]).join('; ')
  if ('problem' in callers || problem !== '') return no(`the ConfigMap "${wanted.callers}" can't be used: ${problem}`)
  const secretKeys = mergedKeys(config.secretKeys, callers.secretKeys)
  return { allowed: true, patch: injectionPatch(pod, wanted, { ...callers, image, fixedUser, keys, secretKeys }) }
}
