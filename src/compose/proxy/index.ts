export { buildCandidate } from './configuration.ts'
export { stateOfConnections } from './connection-pool.ts'
export { startAdmin, type TryUsers } from './listener.ts'
export { type AuthServers, type HeldAuthenticators, loadModules } from './pools.ts'
export {
  DEFAULT_DRAIN_GRACE_MS,
  type InlineProxyOptions,
  type ProxyProcess,
  type ProxyProcessOptions,
  runInlineProxy,
  type RunningProxy,
  runProxy,
  type RunProxyOptions,
  startProxy,
} from './process.ts'
export { readProxyConfig } from './read-config.ts'
export { fixedSettings, type FixedSettings } from './reload.ts'
export { type Common, createServices, type Services } from './services.ts'
export { openReceiverClient } from './tracing.ts'
