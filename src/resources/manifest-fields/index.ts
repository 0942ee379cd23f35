export { AUTH_SERVER_FIELDS } from './auth-server.ts'
export { asksFor, refusals, tabledFields } from './rules.ts'
export { fieldsBelow, type FieldTable, type FieldVerdict } from './verdict.ts'
export { WORKLOAD_FIELDS } from './workloads.ts'
