import { readFileSync } from 'node:fs'
import type { ControlPlane } from './control-plane.ts'

/** One request, as the API server wrote it down. */
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
}

/** All requests of one user, oldest first. */
export const requestsOf = ({ auditLogPath }: ControlPlane, username: string): AuditEvent[] =>
  readFileSync(auditLogPath, 'utf8')
    .split('\n')
    .filter((line) => line.includes(username))
    .map((line) => JSON.parse(line) as AuditEvent)
    .filter(({ user }) => user.username === username)

const READS = new Set(['get', 'list', 'watch'])

/** Whether it asked for a change, granted or not. */
export const isWrite = ({ verb }: AuditEvent): boolean => !READS.has(verb)
