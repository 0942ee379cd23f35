import { createHash } from 'node:crypto'
import type { KubeObject } from '../kube/index.ts'
import type { EventNote } from './actions.ts'
import { type Condition, isGood } from './conditions.ts'

/** Bound of `events.k8s.io/v1` for `note`. */
const MAX_NOTE = 1024

/** The event that says how a condition has changed. */
export function eventOf(regarding: KubeObject, condition: Condition): EventNote {
  const { type, status, reason, message } = condition
  return {
    regarding,
    type: isGood(condition) ? 'Normal' : 'Warning',
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
    metadata: { name: `${name.slice(0, 230)}.${id}`, namespace },
    eventTime: now.toISOString().replace('Z', '000Z'),
    reportingController: reporter.controller,
    reportingInstance: reporter.instance.slice(0, 128),
    action: 'Reconcile',
    reason: event.reason.slice(0, 128),
    note: event.note.length <= MAX_NOTE ? event.note : `${event.note.slice(0, MAX_NOTE - 1)}…`,
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
