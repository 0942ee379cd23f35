export {
  type AuditTrail,
  type AuditTrailOptions,
  createAuditTrail,
  LEAST_KEY_BYTES,
  type PreparedTrail,
} from './trail.ts'
export { eventTypeOf, type RoleRecord } from './request-trace.ts'
export { isTrailFile } from './trail-file.ts'
