import type { KubeObject } from '../../kube/index.ts'
import { readCallers, type SidecarCallers } from '../injection/callers.ts'
import { injectionPatch } from '../injection/pod-patch.ts'
import { type InjectionRequest, readInjection, unclearLabel } from '../injection/request.ts'
import { mergedKeys } from '../key-refs.ts'
import type { PodKeys } from '../references.ts'
import type { AdmissionDecision, AdmissionRequest } from './review.ts'

/** What is known of a config when a pod is to be injected for it. */
export interface InjectableConfig {
  /** Keys of Secrets that it names, by Secret. */
  readonly secretKeys: ReadonlyMap<string, ReadonlySet<string>>
  /** Why it can't run as a sidecar; undefined when it can. */
  readonly problem: string | undefined
}

/** What a pod names in its namespace; undefined where there is none. */
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
  /** Why a Secret of the callers may not be named; empty when it may. */
  readonly barred?: (namespace: string, names: readonly string[]) => readonly string[]
}

/** What a pod asks for, or the decision that needs no look at the cluster. */
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

/** Injects the sidecar into a pod that asks for it, or refuses with a message that names what is missing. */
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
      `the annotation ${keys.externalAuth} names "${wanted.config}", and there is no such MCPExternalAuthConfig in namespace "${namespace}"`,
    )
  if (config.problem !== undefined)
    return no(`the MCPExternalAuthConfig "${wanted.config}" can't run as a sidecar: ${config.problem}`)
  if (configMap === undefined)
    return no(
      `the annotation ${keys.callers} names "${wanted.callers}", and there is no such ConfigMap in namespace "${namespace}"`,
    )
  const callers: SidecarCallers | { readonly problem: string } = readCallers(configMap)
  const problem = 'problem' in callers ? callers.problem : barred(namespace, [...callers.secretKeys.keys()]).join('; ')
  if ('problem' in callers || problem !== '') return no(`the ConfigMap "${wanted.callers}" can't be used: ${problem}`)
  const secretKeys = mergedKeys(config.secretKeys, callers.secretKeys)
  return { allowed: true, patch: injectionPatch(pod, wanted, { ...callers, image, fixedUser, keys, secretKeys }) }
}
