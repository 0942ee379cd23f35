export { type RunningRegistry, runRegistryServer } from './run-registry.ts'
