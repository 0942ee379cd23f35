export type { OpsHandler, OpsReply, OpsRequest, Readiness } from './endpoint.ts'
export { startOps, type Ops, type OpsOptions } from './server.ts'
