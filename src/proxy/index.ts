export { documentHandler } from './documents.ts'
export { createProxy } from './proxy.ts'
export {
  DEFAULT_DEADLINES,
  type Deadlines,
  type ListenOptions,
  type Proxy,
  type ProxyOptions,
  type Runtime,
  type TlsMaterial,
} from './options.ts'
