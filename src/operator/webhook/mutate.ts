import { injectionPatch } from '../injection/pod-patch.ts'
import { readInjection } from '../injection/request.ts'
import type { PodKeys } from '../references.ts'
import type { AdmissionDecision, AdmissionRequest } from './review.ts'

/** What is known of a config when a pod is to be injected for it. */
export interface InjectableConfig {
  /** Keys of Secrets that it names, by Secret. */
  readonly secretKeys: ReadonlyMap<string, ReadonlySet<string>>
  /** Why it can't run as a sidecar; undefined when it can. */
  readonly problem: string | undefined
}

export interface MutateOptions {
  readonly keys: PodKeys
  readonly image: string
  /** The config of that name; undefined when there is none. */
  readonly config: (namespace: string, name: string) => InjectableConfig | undefined
}

/** Injects the sidecar into a labelled pod, or refuses with a message that names what is missing. */
export function decideInjection(request: AdmissionRequest, { keys, image, config }: MutateOptions): AdmissionDecision {
  const { object: pod, namespace } = request
  if (pod === undefined) return { allowed: true }
  const read = readInjection(pod, keys)
  if (!read.wanted) return { allowed: true }
  if (read.problems !== undefined) return { allowed: false, message: read.problems.join('\n') }
  const wanted = read.request
  const found = config(namespace, wanted.config)
  if (found === undefined)
    return {
      allowed: false,
      message: `the annotation ${keys.externalAuth} names "${wanted.config}", and there is no such MCPExternalAuthConfig in namespace "${namespace}"`,
    }
  if (found.problem !== undefined)
    return {
      allowed: false,
      message: `the MCPExternalAuthConfig "${wanted.config}" can't run as a sidecar: ${found.problem}`,
    }
  return { allowed: true, patch: injectionPatch(pod, wanted, { image, keys, secretKeys: found.secretKeys }) }
}
