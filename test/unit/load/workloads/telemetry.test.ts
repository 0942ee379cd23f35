import { describe, expect, test } from 'vitest'
import { renderProblem, resolveProxy } from '../../../../src/load/index.ts'
import { load, workload } from '../../../support/load/documents/build.ts'

const tracing = { enabled: true }
const config = (openTelemetry: object) =>
  workload('MCPTelemetryConfig', 'traces', { openTelemetry: { enabled: true, tracing, ...openTelemetry } })
const remote = (spec: object) =>
  workload('MCPRemoteProxy', 'w', { remoteUrl: 'https://backend.example.com/mcp', ...spec })
const referring = (more: object = {}) => remote({ telemetryConfigRef: { name: 'traces', ...more } })

function resolve(...documents: readonly object[]) {
  const { config: found, problems = [] } = resolveProxy(load(...documents), { secretsDirectory: '/secrets' })
  return { telemetry: found?.routes[0]?.telemetry, problems: problems.map(renderProblem).join('\n') }
}

describe('where the traces of a workload go', () => {
  test.each([
    [{ endpoint: 'otel.example.com:4318' }, 'https://otel.example.com:4318/v1/traces'],
    [{ endpoint: 'otel.example.com:4318', insecure: true }, 'http://otel.example.com:4318/v1/traces'],
    [{ endpoint: 'https://otel.example.com/otlp/' }, 'https://otel.example.com/otlp/v1/traces'],
    [{ endpoint: 'https://otel.example.com/v1/traces' }, 'https://otel.example.com/v1/traces'],
    [{ endpoint: 'http://127.0.0.1:4318' }, 'http://127.0.0.1:4318/v1/traces'],
    [{ endpoint: 'http://otel:4318', insecure: true }, 'http://otel:4318/v1/traces'],
    [{ endpoint: '[::1]:4318' }, 'https://[::1]:4318/v1/traces'],
  ])('%j is %s', (openTelemetry, url) => {
    expect(resolve(config(openTelemetry), referring()).telemetry?.url).toBe(url)
  })

  test.each([
    ['nothing is enabled', { enabled: false, endpoint: 'http://otel.example.com:4317' }],
    ['traces are not', { endpoint: 'otel.example.com', tracing: { enabled: false } }],
    ['there is no endpoint', {}],
  ])('nowhere where %s', (_what, openTelemetry) => {
    expect(resolve(config(openTelemetry), referring())).toEqual({ telemetry: undefined, problems: '' })
  })

  test('with what the document says, and the name of the workload unless it says another', () => {
    const openTelemetry = {
      endpoint: 'otel.example.com',
      headers: { 'X-Scope': 'a' },
      sensitiveHeaders: [{ name: 'Authorization', secretKeyRef: { name: 'otel', key: 'token' } }],
      caBundleRef: { configMapRef: { name: 'ca', key: 'ca.crt' } },
      resourceAttributes: { 'deployment.environment': 'test', 'service.name': 'of-all' },
      tracing: { enabled: true, samplingRate: '0.25' },
    }
    const telemetry = {
      name: 'default/traces',
      url: 'https://otel.example.com/v1/traces',
      headers: { 'X-Scope': 'a' },
      secretHeaders: [{ name: 'Authorization', ref: { name: 'otel', key: 'token' } }],
      caCertPath: '/secrets/ca/ca.crt',
      samplingRate: 0.25,
      attributes: { 'service.namespace': 'default', 'deployment.environment': 'test', 'service.name': 'w' },
    }
    expect(resolve(config(openTelemetry), referring()).telemetry).toEqual(telemetry)
    const named = resolve(config(openTelemetry), referring({ serviceName: 'x' })).telemetry
    expect(named?.attributes['service.name']).toBe('x')
    expect(resolve(config({ endpoint: 'otel.example.com' }), referring()).telemetry?.samplingRate).toBe(0.05)
  })

  test.each([
    [{ endpoint: 'http://otel.example.com' }, 'openTelemetry.endpoint  goes over plain http to another machine'],
    [{ endpoint: 'https://otel.example.com', insecure: true }, 'openTelemetry.insecure  must be absent or false'],
    [
      { endpoint: 'a', insecure: true, caBundleRef: { configMapRef: { name: 'ca', key: 'c' } } },
      'openTelemetry.caBundleRef  "caBundleRef" is for https',
    ],
    [{ endpoint: 'https://user:pass@otel.example.com' }, 'openTelemetry.endpoint  expected HOST:PORT, or'],
    [{ endpoint: 'https://otel.example.com?key=a' }, 'openTelemetry.endpoint  expected HOST:PORT, or'],
    [{ headers: { 'Content-Type': 'text/plain' } }, 'openTelemetry.headers  expected no "Content-…" header'],
    [{ headers: { Host: 'a' } }, 'openTelemetry.headers.Host  expected a header that is not framing'],
    [
      { headers: { 'X-A': 'a' }, sensitiveHeaders: [{ name: 'x-a', secretKeyRef: { name: 'a', key: 'b' } }] },
      'openTelemetry.sensitiveHeaders  duplicate header',
    ],
    [{ tracing: { enabled: true, samplingRate: '2' } }, 'tracing.samplingRate  expected a number from 0 to 1'],
    [{ tracing: { enabled: true, sampleRate: '1' } }, 'unknown field "sampleRate", did you mean "samplingRate"?'],
  ])('%j is refused', (openTelemetry, sentence) => {
    expect(resolve(config(openTelemetry), referring()).problems).toContain(sentence)
  })

  test('a reference that leads nowhere is refused by name, and so are two ways at once', () => {
    expect(resolve(referring()).problems).toContain('there is no MCPTelemetryConfig "traces" in namespace "default"')
    const both = remote({ telemetry: {}, telemetryConfigRef: { name: 'traces' } })
    expect(resolve(config({}), both).problems).toContain('"telemetry" and "telemetryConfigRef" are mutually exclusive')
  })

  test('the earlier way: headers as NAME=VALUE, and its own name', () => {
    const openTelemetry = {
      enabled: true,
      endpoint: 'otel.example.com',
      headers: ['X-Scope=a=b'],
      serviceName: 'x',
      tracing,
    }
    expect(resolve(remote({ telemetry: { openTelemetry } })).telemetry).toMatchObject({
      name: 'default/w',
      headers: { 'X-Scope': 'a=b' },
      attributes: { 'service.name': 'x' },
    })
  })
})
