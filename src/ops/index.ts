export type { OpsHandler, OpsReply, OpsRequest, Readiness } from './endpoint.ts'
export { type PageRequest, type Pages, sendJson } from './pages.ts'
export { startOps, type Ops, type OpsOptions } from './server.ts'
