import type { CrdKind } from '../../../../../src/load/publish/index.ts'

const secret = { name: 'otel', key: 'token' }
const traces = {
  enabled: true,
  endpoint: 'otel.example.com:4318',
  insecure: false,
  tracing: { enabled: true, samplingRate: '0.1' },
  metrics: { enabled: true },
  useLegacyAttributes: false,
}
const bundle = { configMapRef: secret }
const named = { name: 'traces', serviceName: 'own' }
const remoteUrl = 'https://api.example.com/mcp'

/** Where traces go, with every field of it, and what is said by two fields at once. */
export const TRACES: readonly (readonly [kind: CrdKind, spec: object])[] = [
  [
    'MCPTelemetryConfig',
    {
      openTelemetry: {
        ...traces,
        headers: { 'X-Scope': 'tools' },
        sensitiveHeaders: [{ name: 'Authorization', secretKeyRef: secret }],
        caBundleRef: bundle,
        resourceAttributes: { 'deployment.environment': 'test' },
      },
      prometheus: { enabled: true },
    },
  ],
  ['MCPTelemetryConfig', { openTelemetry: { ...traces, endpoint: 'https://otel.example.com/otlp', insecure: true } }],
  ['MCPTelemetryConfig', { openTelemetry: { ...traces, insecure: true, caBundleRef: bundle } }],
  ['MCPToolConfig', { toolsFilter: ['search', 'get page'], toolsOverride: { a: { name: 'b', description: 'c' } } }],
  ['MCPToolConfig', { toolsFilter: ['get_*'] }],
  ['VirtualMCPServer', { telemetryConfigRef: named }],
  ['MCPServer', { telemetryConfigRef: named, toolConfigRef: { name: 'few' } }],
  ['MCPServerEntry', { remoteUrl, toolConfigRef: { name: 'few' } }],
  ['MCPRemoteProxy', { remoteUrl, telemetryConfigRef: named, toolConfigRef: { name: 'few' } }],
  [
    'MCPRemoteProxy',
    {
      remoteUrl,
      telemetry: {
        openTelemetry: { ...traces, serviceName: 'own', headers: ['X-Scope=tools'] },
        prometheus: { enabled: true },
      },
    },
  ],
]
