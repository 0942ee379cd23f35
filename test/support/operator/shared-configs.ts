import type { KubeObject } from '../../../src/kube/index.ts'
import { object } from './objects.ts'

/** An MCPOIDCConfig `corp`. */
export const inlineProvider = (more: object = {}): KubeObject =>
  object('MCPOIDCConfig', 'corp', {
    type: 'inline',
    inline: {
      issuer: 'https://idp.example.com:8443',
      clientId: 'a',
      clientSecretRef: { name: 'oidc', key: 'secret' },
      caBundleRef: { configMapRef: { name: 'ca', key: 'ca.crt' } },
      ...more,
    },
  })
export const oidcConfigRef = { name: 'corp', audience: 'mcp', resourceUrl: 'https://mcp.example.com' }

/** An MCPTelemetryConfig `traces`. */
export const traces = (more: object = {}): KubeObject =>
  object('MCPTelemetryConfig', 'traces', {
    openTelemetry: {
      enabled: true,
      endpoint: 'otel.observability.svc:4318',
      sensitiveHeaders: [{ name: 'Authorization', secretKeyRef: { name: 'otel', key: 'token' } }],
      caBundleRef: { configMapRef: { name: 'ca', key: 'ca.crt' } },
      tracing: { enabled: true },
      ...more,
    },
  })
export const telemetryConfigRef = { name: 'traces', serviceName: 'measured' }

/** An MCPToolConfig `few`. */
export const fewTools = (spec: object = { toolsFilter: ['search', 'get_page'] }): KubeObject =>
  object('MCPToolConfig', 'few', spec)
export const toolConfigRef = { name: 'few' }
