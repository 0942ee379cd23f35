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
 * add more, leave out what is empty, and write amounts in their way), and it was applied from the same fields. Then nothing
 * is written.
 */
export const isAsWanted = (wanted: KubeObject, observed: KubeObject | undefined): boolean =>
  observed !== undefined &&
  contains(observed, wanted, {
    field: '',
    within: '',
    keyed: wanted.kind === 'NetworkPolicy' ? OWNERS_ONLY : KEYED_LISTS,
  })

/** Whether it was applied from these fields: another value of one is drift, or the way in which the server writes it. */
export const isAppliedFrom = (wanted: KubeObject, observed: KubeObject): boolean =>
  wanted.metadata.annotations?.[APPLIED_HASH] === observed.metadata.annotations?.[APPLIED_HASH]

interface At {
  readonly field: string
  /** The field that holds this one. */
  readonly within: string
  /** Lists of which others may own items (`listType=map`); of all others we own the whole. */
  readonly keyed: ReadonlySet<string>
}

function contains(observed: unknown, wanted: unknown, at: At): boolean {
  if (observed === undefined && isLeftOut(wanted, at)) return true
  if (Array.isArray(wanted)) {
    if (!Array.isArray(observed)) return false
    const item: At = { ...at, field: '', within: at.field }
    if (at.keyed.has(at.field)) return wanted.every((one) => observed.some((found) => contains(found, one, item)))
    return observed.length === wanted.length && wanted.every((one, index) => contains(observed[index], one, item))
  }
  if (typeof wanted === 'object' && wanted !== null) {
    if (typeof observed !== 'object' || observed === null || Array.isArray(observed)) return false
    return Object.entries(wanted).every(([field, value]) =>
      contains((observed as Record<string, unknown>)[field], value, { ...at, field, within: at.field }),
    )
  }
  const isAmount = QUANTITIES.has(at.within) || AMOUNTS.has(at.field)
  return observed === wanted || (isAmount && isSameQuantity(observed, wanted))
}

const OWNERS_ONLY: ReadonlySet<string> = new Set(['ownerReferences'])
/** Those of what we apply; of a NetworkPolicy no other, its `ports` too. */
const KEYED_LISTS: ReadonlySet<string> = new Set([
  ...OWNERS_ONLY,
  'containers',
  'env',
  'hostAliases',
  'imagePullSecrets',
  'initContainers',
  'ports',
  'resourceClaims',
  'schedulingGates',
  'topologySpreadConstraints',
  'volumeDevices',
  'volumeMounts',
  'volumes',
])

/** Whether the API server leaves such a value out when it stores it. `false` it keeps where its absence would say another. */
function isLeftOut(wanted: unknown, { field, within }: At): boolean {
  if (wanted === false) return LEFT_OUT_WHEN_FALSE.has(field)
  if (wanted === '') return !TEXTS_BY_NAME.has(within)
  if (typeof wanted === 'object' && wanted !== null) return Object.keys(wanted).length === 0
  return wanted === undefined || wanted === null || wanted === 0
}

/** Maps whose members have names that anybody may choose: an empty text is a value there. */
const TEXTS_BY_NAME: ReadonlySet<string> = new Set(['annotations', 'data', 'labels', 'matchLabels', 'nodeSelector'])

const LEFT_OUT_WHEN_FALSE: ReadonlySet<string> = new Set([
  'hostIPC',
  'hostNetwork',
  'hostPID',
  'readOnly',
  'stdin',
  'stdinOnce',
  'tty',
])

/** Fields whose members are quantities, which the API server writes in another form: `0.1` becomes `100m`. */
const QUANTITIES: ReadonlySet<string> = new Set(['requests', 'limits'])
/** Fields that are one. */
const AMOUNTS: ReadonlySet<string> = new Set(['sizeLimit', 'divisor'])

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
