export {
  NAMES,
  type Operator,
  type OperatorOptions,
  startOperator,
  unfitForPods,
  type WebhookOptions,
} from './operator.ts'
export { type Certificate, readCertificate } from './webhook/certificates.ts'
export { type ConfigurationOptions, mutatingConfiguration, validatingConfiguration } from './webhook/configurations.ts'
export { CLUSTER_TYPES, ownTypes } from './kinds.ts'
export { readInjection } from './injection/request.ts'
export { podKeys } from './references.ts'
