export { decide, type Decision, type DecisionCaller } from './decision.ts'
export { createDecisionLog, type DecisionLog, type DecisionRecord, type RouteDecisions } from './decision-log.ts'
export { stsEndpoint, stsEndpointOf, type StsSettings } from './endpoint.ts'
export { keyParts } from './key-parts.ts'
export {
  createRoleMapper,
  type MappingStep,
  type RoleChoice,
  type RoleMapper,
  type RoleRequest,
} from './role-mapper.ts'
export type { SessionName } from './session-name.ts'
export { createCloudStsSource, type CloudStsPlan } from './source.ts'
export { identityFor } from './identity/identities.ts'
export { createIdentityPool, type Identities, type OpenIdentity } from './identity/pool.ts'
export { createServiceSource } from './service-source.ts'
