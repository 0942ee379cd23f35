export { documentHandler } from './documents.ts'
export { createProxy } from './proxy.ts'
export type { ListenOptions, Proxy, ProxyOptions, Runtime } from './options.ts'
