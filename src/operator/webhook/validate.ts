import type { KubeObject } from '../../kube/index.ts'
import { parseObjects, type Problem } from '../../load/index.ts'
import type { AdmissionDecision, AdmissionRequest } from './review.ts'

/** `path  message` of a problem, as `validate` words it, without a place that an object does not have. */
export const wordsOf = ({ path, message }: Problem): string => (path === '' ? message : `${path}: ${message}`)

/** What a person wrote: nothing of the server, no status. */
export const bare = ({ apiVersion, kind, metadata: { name, namespace }, spec }: KubeObject): KubeObject => ({
  apiVersion,
  kind,
  metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
  spec,
})

/** What `validate` says about one object by itself. */
export function judgeObject(
  object: KubeObject,
  apiGroup: string,
): { readonly problems: string[]; readonly warnings: string[] } {
  const loaded = parseObjects([object], { apiGroup })
  return { problems: unique(loaded.problems.map(wordsOf)), warnings: unique(loaded.warnings.map(wordsOf)) }
}

const MAX_PROBLEMS = 50

/**
 * Judges one object of our kinds by the rules of `validate`; `missing` says which referenced configs do not exist (yet):
 * objects may come in any order, so that is a warning.
 */
export function decideValidation(
  request: AdmissionRequest,
  options: {
    readonly apiGroup: string
    readonly missing: (
      object: KubeObject,
      namespace: string,
    ) => readonly { readonly kind: string; readonly name: string }[]
    /** What this operator refuses beyond the rules. */
    readonly forbidden?: (object: KubeObject, namespace: string) => readonly string[]
  },
): AdmissionDecision {
  const { object } = request
  // Deletes don't come here; anything without an object has nothing to be judged.
  if (object === undefined) return { allowed: true }
  // A status is written by an operator, which may be newer than this one.
  const { problems: ruled, warnings } = judgeObject(bare(object), options.apiGroup)
  const problems = unique([...ruled, ...(options.forbidden?.(object, request.namespace) ?? [])])
  if (problems.length > 0) {
    const shown = problems.slice(0, MAX_PROBLEMS)
    const more = problems.length > shown.length ? [`and ${problems.length - shown.length} more`] : []
    return { allowed: false, message: [...shown, ...more].join('\n') }
  }
  const missing = options
    .missing(object, request.namespace)
    .map(({ kind, name }) => `there is no ${kind} "${name}" in namespace "${request.namespace}" yet`)
  return { allowed: true, warnings: [...warnings, ...missing] }
}

const unique = (texts: readonly string[]): string[] => [...new Set(texts)]
