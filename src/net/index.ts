export {
  type ApiClient,
  type ApiClientOptions,
  type ApiRequest,
  type ApiStream,
  createApiClient,
} from './api-client.ts'
export { type EgressProxy, egressProxyFor, refusedByProxy } from './egress.ts'
export { busyFailure, outboundFailure, retryAfterSeconds, type ServiceFailures } from './failure.ts'
export type { GuardOptions, Resolver } from './guard.ts'
export { type ClientCertificate, createOutbound, type OutboundOptions } from './outbound.ts'
export type { BreakerOptions } from './circuit.ts'
export { createProtections, type Protections } from './protections.ts'
export {
  createSmithyHandler,
  type SmithyCallOptions,
  type SmithyHandler,
  type SmithyRequest,
  type SmithyResponse,
} from './smithy-handler.ts'
export { type ConnectionProbe, probeConnection, type ProbedCertificate, type ProbeOptions } from './probe.ts'
export { requestOnce } from './single-request.ts'
export { limitOfBackend, type Timeouts, within } from './limits.ts'
export {
  type Backend,
  type BackendOptions,
  ConnectionBudget,
  createBackend,
  type ExchangeControl,
  type ExchangeHandler,
  type Exchanges,
} from './backend.ts'
export type { TargetTls } from './target-tls.ts'
export { createMcpEndpoint, createMemoryEndpoint, type McpEndpointOptions } from './mcp-endpoint.ts'
export { checkHttpClientInUse } from './self-check.ts'
