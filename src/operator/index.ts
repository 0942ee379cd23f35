export { NAMES, type Operator, type OperatorOptions, startOperator, type WebhookOptions } from './operator.ts'
export { type Certificate, readCertificate } from './webhook/certificates.ts'
export { type ConfigurationOptions, mutatingConfiguration, validatingConfiguration } from './webhook/configurations.ts'
export {
  DEFAULT_POD_SETTINGS,
  type EgressRule,
  type ProxyPolicy,
  readEgressRule,
  readProxyPolicy,
} from './pod-settings.ts'
export { CLUSTER_TYPES, ownTypes, servedVersion } from './kinds.ts'
export { proxyProblems } from './remote-proxy/proxy-problems.ts'
export { ownedName } from './names.ts'
export { unfitForPods } from './webhook/decisions.ts'
export { readInjection, unclearLabel } from './injection/request.ts'
export { imageOfPod } from './own-image.ts'
export { podKeys } from './references.ts'
