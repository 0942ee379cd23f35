export { jsonReply, type OpsHandler, type OpsReply, type OpsRequest, type Readiness } from './endpoint.ts'
export type { PageRequest, Pages } from './pages.ts'
export { startOps, type Ops, type OpsOptions } from './server.ts'
