export type { ExchangeControl, ExchangeHandler } from './exchange.ts'
export { Pool } from './pool.ts'
export { WireError } from './wire-error.ts'
export type { WireRequest } from './request-head.ts'
