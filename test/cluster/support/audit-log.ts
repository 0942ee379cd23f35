import { readFileSync } from 'node:fs'
import type { ControlPlane } from './control-plane.ts'

/** A request as the API server logged it. */
export interface AuditEvent {
  readonly user: { readonly username: string }
  readonly verb: string
  readonly objectRef?: {
    readonly apiGroup?: string
    readonly resource: string
    readonly subresource?: string
    readonly namespace?: string
    readonly name?: string
  }
  readonly responseStatus?: { readonly code: number }
  /** When it was answered. */
  readonly stageTimestamp: string
}

/** All requests of one user, oldest first. */
export const requestsOf = ({ auditLogPath }: ControlPlane, username: string): AuditEvent[] =>
  eventsWith(auditLogPath, username).filter(({ user }) => user.username === username)

/** All changes of an object that were granted, oldest first. */
export const updatesOf = (
  { auditLogPath }: ControlPlane,
  { plural, name }: { readonly plural: string; readonly name: string },
): AuditEvent[] =>
  eventsWith(auditLogPath, plural).filter(
    ({ verb, objectRef, responseStatus }) =>
      verb === 'update' &&
      objectRef?.resource === plural &&
      objectRef.name === name &&
      (responseStatus?.code ?? 500) < 300,
  )

const eventsWith = (auditLogPath: string, text: string): AuditEvent[] =>
  readFileSync(auditLogPath, 'utf8')
    .split('\n')
    .filter((line) => line.includes(text))
    .map((line) => JSON.parse(line) as AuditEvent)

const READS = new Set(['get', 'list', 'watch'])

/** Whether it asked for a change, granted or not. */
export const isWrite = ({ verb }: AuditEvent): boolean => !READS.has(verb)
