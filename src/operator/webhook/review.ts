import type { KubeObject } from '../../kube/index.ts'

/** The request of the API server (`admission.k8s.io/v1`). */
export interface AdmissionRequest {
  readonly uid: string
  readonly kind: { readonly group: string; readonly version: string; readonly kind: string }
  readonly namespace: string
  readonly operation: string
  readonly object: KubeObject | undefined
  readonly isDryRun: boolean
}

/** The response. */
export type AdmissionDecision =
  | { readonly allowed: true; readonly warnings?: readonly string[]; readonly patch?: readonly object[] }
  | {
      readonly allowed: false
      readonly message: string
      /** Nothing was validated: a retry may be admitted. */
      readonly isBusy?: boolean
    }

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const text = (value: unknown): string => (typeof value === 'string' ? value : '')

/** Reads an `AdmissionReview`; undefined if it is invalid. */
export function readReview(body: unknown): AdmissionRequest | undefined {
  if (!isObject(body) || body['kind'] !== 'AdmissionReview' || body['apiVersion'] !== 'admission.k8s.io/v1')
    return undefined
  const { request } = body
  if (!isObject(request) || typeof request['uid'] !== 'string' || request['uid'] === '' || !isObject(request['kind']))
    return undefined
  const { kind, object, operation } = request
  // Only a deletion has none.
  if (isObject(object) ? !isWellFormed(object) : operation !== 'DELETE') return undefined
  return {
    uid: request['uid'],
    kind: { group: text(kind['group']), version: text(kind['version']), kind: text(kind['kind']) },
    namespace: text(request['namespace']),
    operation: text(operation),
    object: isObject(object) ? (object as unknown as KubeObject) : undefined,
    isDryRun: request['dryRun'] === true,
  }
}

/** Whether maps are maps and pod lists contain objects, as API servers send them. */
function isWellFormed({ metadata, spec }: Record<string, unknown>): boolean {
  if (!isObject(metadata)) return false
  const { labels = {}, annotations = {} } = metadata
  const { containers = [], initContainers = [], volumes = [] } = isObject(spec) ? spec : {}
  const lists = [containers, initContainers, volumes]
  return isObject(labels) && isObject(annotations) && lists.every((list) => Array.isArray(list) && list.every(isObject))
}

/** The API server truncates warnings: 256 characters each, 4,096 in total. */
const MAX_WARNING = 256
const MAX_WARNINGS = 16

export function reviewOf(uid: string, decision: AdmissionDecision): object {
  const answer = { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview' }
  if (!decision.allowed) {
    const { message, isBusy = false } = decision
    const status = isBusy
      ? { code: 429, reason: 'TooManyRequests', message, details: { retryAfterSeconds: 1 } }
      : { code: 422, reason: 'Invalid', message }
    return { ...answer, response: { uid, allowed: false, status } }
  }
  const warnings = (decision.warnings ?? []).slice(0, MAX_WARNINGS).map((warning) => warning.slice(0, MAX_WARNING))
  const { patch = [] } = decision
  return {
    ...answer,
    response: {
      uid,
      allowed: true,
      ...(warnings.length === 0 ? {} : { warnings }),
      ...(patch.length === 0
        ? {}
        : { patchType: 'JSONPatch', patch: Buffer.from(JSON.stringify(patch)).toString('base64') }),
    },
  }
}
