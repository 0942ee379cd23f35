import { createHash } from 'node:crypto'
import type { KubeObject } from '../kube/index.ts'
import { canonicalJson } from '../resources/index.ts'

/** Annotation of what we own: hash of the fields that were applied, so that a field that we no longer want is noticed. */
export const APPLIED_HASH = 'extauth.dev/applied'

/** The object with the hash of itself, as it is applied. */
export function stamped(object: KubeObject): KubeObject {
  const hash = createHash('sha256').update(canonicalJson(object)).digest('hex').slice(0, 16)
  const { metadata } = object
  return { ...object, metadata: { ...metadata, annotations: { ...metadata.annotations, [APPLIED_HASH]: hash } } }
}

/**
 * Whether an observed object already is as wanted: every field that we apply is there with our value (the server and others
 * add more), and it was applied from the same fields. Then nothing is written.
 */
export const isAsWanted = (wanted: KubeObject, observed: KubeObject | undefined): boolean =>
  observed !== undefined && contains(observed, wanted)

function contains(observed: unknown, wanted: unknown): boolean {
  if (Array.isArray(wanted)) {
    return (
      Array.isArray(observed) &&
      observed.length === wanted.length &&
      wanted.every((item, index) => contains(observed[index], item))
    )
  }
  if (typeof wanted === 'object' && wanted !== null) {
    if (typeof observed !== 'object' || observed === null || Array.isArray(observed)) return false
    return Object.entries(wanted).every(([name, value]) => contains((observed as Record<string, unknown>)[name], value))
  }
  return observed === wanted || wanted === undefined
}
