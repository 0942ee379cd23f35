export { type AuditTrail, type AuditTrailOptions, createAuditTrail, type PreparedTrail } from './trail.ts'
export type { RoleRecord } from './request-trace.ts'
