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

function contains(observed: unknown, wanted: unknown, within = ''): boolean {
  if (Array.isArray(wanted)) {
    return (
      Array.isArray(observed) &&
      observed.length === wanted.length &&
      wanted.every((item, index) => contains(observed[index], item))
    )
  }
  if (typeof wanted === 'object' && wanted !== null) {
    if (typeof observed !== 'object' || observed === null || Array.isArray(observed)) return false
    return Object.entries(wanted).every(([name, value]) => {
      const found = (observed as Record<string, unknown>)[name]
      return contains(found, value, name) || (QUANTITIES.has(within) && isSameQuantity(found, value))
    })
  }
  return observed === wanted || wanted === undefined
}

/** Fields whose members are quantities, which the API server writes in another form: `0.1` becomes `100m`. */
const QUANTITIES: ReadonlySet<string> = new Set(['requests', 'limits'])

const isSameQuantity = (observed: unknown, wanted: unknown): boolean => {
  const amount = amountOf(wanted)
  return amount !== undefined && amountOf(observed) === amount
}

const SUFFIXES = ['n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E']

/** A quantity of Kubernetes as a number; undefined for what is none. */
function amountOf(value: unknown): number | undefined {
  if (typeof value !== 'string' && typeof value !== 'number') return undefined
  const [, digits, suffix = '', binary] =
    /^([+-]?[\d.]+(?:[eE][+-]?\d+)?)(?:([numkMGTPE])|([KMGTPE])i)?$/.exec(String(value)) ?? []
  if (digits === undefined) return undefined
  const power = binary === undefined ? 1000 ** (SUFFIXES.indexOf(suffix) - 3) : 1024 ** ('KMGTPE'.indexOf(binary) + 1)
  return Number((Number(digits) * power).toPrecision(12))
}
