export { startLabBackend, type LabBackend, type LabBackendOptions } from './backend.ts'
export { createLabFaults, type FaultMode, type LabFaults } from './faults.ts'
export type { LabClient } from './identity/clients.ts'
export type { LabUser } from './identity/authorize.ts'
export {
  LAB_USERS,
  startLabIdentityProvider,
  type LabIdentityProvider,
  type LabIdentityProviderOptions,
} from './identity/provider.ts'
export { LAB_AUDIENCE } from './identity/tokens.ts'
export { personalKeyOf, ownerOfKey } from './personal-keys.ts'
export { freePort } from './free-port.ts'
export { PortInUse } from './listen.ts'
export type { RecordedRequest, WaitOutcome } from './mcp/state.ts'
export { LAB_REDIS_RULES, type LabRedis, type LabRedisPorts, startLabRedis } from './redis/deployment.ts'
export type { Requirement } from './requirements.ts'
export { type IssuedCredentials, verifySigv4 } from './sigv4-verify.ts'
export type { LabRole } from './sts/assume-role.ts'
export { startLabSts, type LabSts, type LabStsOptions } from './sts/service.ts'
export { startLabWorkspace, type LabWorkspace, type LabWorkspaceOptions } from './workspace/provider.ts'
export { CONTAINER_PATH, type LabMetadata, startLabMetadata } from './metadata.ts'
