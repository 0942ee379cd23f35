import { createHash } from 'node:crypto'
import type { KubeObject } from '../kube/index.ts'
import type { EventNote } from './actions.ts'
import { type Condition, isWarning } from './conditions.ts'
import { shortened } from './names.ts'

/** Bound of `events.k8s.io/v1` for `note`: bytes of UTF-8, though its documentation says characters. */
const MAX_NOTE_BYTES = 1024
/** Characters of a name, before what tells events of one object apart. */
const MAX_NAME = 230

/** The event that says how a condition has changed; `before`: the conditions that were there. */
export function eventOf(regarding: KubeObject, condition: Condition, before: readonly Condition[]): EventNote {
  const { type, status, reason, message } = condition
  return {
    regarding,
    type: isWarning(condition, before) ? 'Warning' : 'Normal',
    reason,
    note: `${type}: ${message === '' ? status : message}`,
  }
}

/** The `events.k8s.io/v1` object of a note. Its name holds what it is about, so that one change is one event however often it is sent. */
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
    note: cut(event.note),
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

function cut(note: string): string {
  const bytes = Buffer.from(note)
  if (bytes.length <= MAX_NOTE_BYTES) return note
  const end = '…'
  // What is left of a character that is torn is kept back as the beginning of what never comes.
  const kept = new TextDecoder().decode(bytes.subarray(0, MAX_NOTE_BYTES - Buffer.byteLength(end)), { stream: true })
  return kept + end
}
