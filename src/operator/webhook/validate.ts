import type { KubeObject } from '../../kube/index.ts'
import { validateObject } from '../object-rules.ts'
import type { AdmissionDecision, AdmissionRequest } from './review.ts'

const MAX_PROBLEMS = 50

/**
 * Validates one object by the rules of `validate`. `missing` lists referenced configs that do not exist (yet):
 * objects may be created in any order, so that is a warning.
 */
export function decideValidation(
  request: AdmissionRequest,
  options: {
    readonly apiGroup: string
    readonly missing: (
      object: KubeObject,
      namespace: string,
    ) => readonly { readonly kind: string; readonly name: string }[]
    /** Validates the object. Default: by the rules of `validate`. */
    readonly review?: (
      object: KubeObject,
      namespace: string,
    ) => { readonly problems: readonly string[]; readonly warnings: readonly string[] }
    /** Additional rules of this operator. */
    readonly forbidden?: (object: KubeObject, namespace: string) => readonly string[]
  },
): AdmissionDecision {
  const { object } = request
  // Deletions are not reviewed; a request without an object has nothing to validate.
  if (object === undefined) return { allowed: true }
  const { review = (one) => validateObject(one, options.apiGroup) } = options
  const { problems: ruled, warnings } = review(object, request.namespace)
  const problems = [...new Set([...ruled, ...(options.forbidden?.(object, request.namespace) ?? [])])]
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
