export { documentHandler } from './documents.ts'
export { createLocalHandlers } from './local-handlers.ts'
export { createProxy } from './proxy.ts'
export type { ListenOptions, Proxy, ProxyOptions, Runtime } from './options.ts'
