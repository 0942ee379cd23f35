import { createHash } from 'node:crypto'
import type { KubeObject } from '../kube/index.ts'
import { canonicalJson } from '../resources/index.ts'

/** Annotation of owned objects: hash of the applied fields, to detect fields that are no longer desired. */
export const APPLIED_HASH = 'extauth.dev/applied'

/** Adds the hash annotation before an apply. */
export function stamped(object: KubeObject): KubeObject {
  const hash = createHash('sha256').update(canonicalJson(object)).digest('hex').slice(0, 16)
  const { metadata } = object
  return { ...object, metadata: { ...metadata, annotations: { ...metadata.annotations, [APPLIED_HASH]: hash } } }
}

/**
 * Whether an observed object equals the desired one: it has every applied field with its value, and was applied from
 * the same fields. The server and others add fields, drop empty ones, and reformat quantities. If equal, nothing is
 * written.
 */
export const isAsWanted = (wanted: KubeObject, observed: KubeObject | undefined): boolean =>
  observed !== undefined &&
  contains(observed, wanted, {
    field: '',
    within: '',
    keyed: wanted.kind === 'NetworkPolicy' ? OWNERS_ONLY : KEYED_LISTS,
  })

/** Whether it was applied from these fields: any other difference is drift, or formatting by the server. */
export const isAppliedFrom = (wanted: KubeObject, observed: KubeObject): boolean =>
  wanted.metadata.annotations?.[APPLIED_HASH] === observed.metadata.annotations?.[APPLIED_HASH]

interface At {
  readonly field: string
  /** The parent field. */
  readonly within: string
  /** Lists with items of several owners (`listType=map`); all others are owned as a whole. */
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
/** Such lists among the applied fields; in a NetworkPolicy none, not even `ports`. */
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

/** Whether the API server omits such a value when it stores it. It keeps `false` where absence means something else. */
function isLeftOut(wanted: unknown, { field, within }: At): boolean {
  if (wanted === false) return LEFT_OUT_WHEN_FALSE.has(field)
  if (wanted === '') return !TEXTS_BY_NAME.has(within)
  if (typeof wanted === 'object' && wanted !== null) return Object.keys(wanted).length === 0
  return wanted === undefined || wanted === null || wanted === 0
}

/** Maps with arbitrary keys: an empty string is a value there. */
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

/** Fields with quantities as values, which the API server reformats: `0.1` becomes `100m`. */
const QUANTITIES: ReadonlySet<string> = new Set(['requests', 'limits'])
/** Fields that are a quantity. */
const AMOUNTS: ReadonlySet<string> = new Set(['sizeLimit', 'divisor'])

const isSameQuantity = (observed: unknown, wanted: unknown): boolean => {
  const amount = amountOf(wanted)
  return amount !== undefined && amountOf(observed) === amount
}

const SUFFIXES = ['n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E']

/** Parses a Kubernetes quantity; undefined if it is invalid. */
function amountOf(value: unknown): number | undefined {
  if (typeof value !== 'string' && typeof value !== 'number') return undefined
  const [, digits, suffix = '', binary] =
    /^([+-]?[\d.]+(?:[eE][+-]?\d+)?)(?:([numkMGTPE])|([KMGTPE])i)?$/.exec(String(value)) ?? []
  if (digits === undefined) return undefined
  const power = binary === undefined ? 1000 ** (SUFFIXES.indexOf(suffix) - 3) : 1024 ** ('KMGTPE'.indexOf(binary) + 1)
  return Number((Number(digits) * power).toPrecision(12))
}
