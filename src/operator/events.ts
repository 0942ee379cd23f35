import { createHash } from 'node:crypto'
import type { KubeObject } from '../kube/index.ts'
import type { EventNote } from './actions.ts'
import { type Condition, isWarning } from './conditions.ts'
import { shortened } from './names.ts'

/** Limit of `events.k8s.io/v1` for `note`: bytes of UTF-8, although documented as characters. */
const MAX_NOTE_BYTES = 1024
/** Maximum characters of the object in an event name, before the suffix that distinguishes its events. */
const MAX_NAME = 230

/** The event for a changed condition; `before`: the previous conditions. */
export function eventOf(regarding: KubeObject, condition: Condition, before: readonly Condition[]): EventNote {
  const { type, status, reason, message } = condition
  return {
    regarding,
    type: isWarning(condition, before) ? 'Warning' : 'Normal',
    reason,
    note: `${type}: ${message === '' ? status : message}`,
  }
}

/**
 * The `events.k8s.io/v1` object of a note. Its name is derived from its content, so that repeated sends create one
 * event.
 */
export function eventObject(
  event: EventNote,
  reporter: { readonly controller: string; readonly instance: string },
  now: Date,
): KubeObject {
  const { apiVersion, kind, metadata } = event.regarding
  const { name, namespace = 'default', uid, resourceVersion } = metadata
  const what = [kind, uid ?? name, event.reason, event.note, resourceVersion ?? ''].join(' ')
  const id = createHash('sha256').update(what).digest('hex').slice(0, 16)
  return {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { name: `${shortened(name, MAX_NAME)}.${id}`, namespace },
    eventTime: now.toISOString().replace('Z', '000Z'),
    reportingController: reporter.controller,
    reportingInstance: reporter.instance.slice(0, 128),
    action: 'Reconcile',
    reason: event.reason.slice(0, 128),
    note: truncate(event.note),
    type: event.type,
    regarding: {
      apiVersion,
      kind,
      name,
      namespace,
      ...(uid === undefined ? {} : { uid }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
    },
  }
}

function truncate(note: string): string {
  const bytes = Buffer.from(note)
  if (bytes.length <= MAX_NOTE_BYTES) return note
  const end = '…'
  // The decoder withholds an incomplete character at the end.
  const kept = new TextDecoder().decode(bytes.subarray(0, MAX_NOTE_BYTES - Buffer.byteLength(end)), { stream: true })
  return kept + end
}
