import { describe, expect, it } from 'vitest'
import { ConfigError } from '../../../src/compose/index.ts'
import { traceSettings } from '../../../src/compose/trace-settings.ts'

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' }

describe('settings of traces in the environment', () => {
  it.each([
    [{ OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, 'OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf or http/json'],
    [{ OTEL_TRACES_EXPORTER: 'zipkin' }, 'OTEL_TRACES_EXPORTER must be otlp or none'],
    [{ OTEL_TRACES_SAMPLER: 'xray' }, 'OTEL_TRACES_SAMPLER must be one of always_on'],
    [
      { OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '2' },
      'OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1',
    ],
    [{ OTEL_EXPORTER_OTLP_COMPRESSION: 'br' }, 'OTEL_EXPORTER_OTLP_COMPRESSION must be gzip or none'],
    [{ OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: '1s' }, 'OTEL_EXPORTER_OTLP_TIMEOUT must be a whole number above zero'],
    [{ OTEL_EXPORTER_OTLP_HEADERS: 'secret' }, 'OTEL_EXPORTER_OTLP_HEADERS must be name=value,name=value'],
    [{ OTEL_EXPORTER_OTLP_HEADERS: 'a=%' }, 'the value of a has an invalid percent-encoding'],
    [{ OTEL_EXPORTER_OTLP_CLIENT_KEY: '/k' }, 'belong together'],
    [{ OTEL_BSP_MAX_QUEUE_SIZE: 'x' }, 'OTEL_BSP_MAX_QUEUE_SIZE must be a whole number above zero'],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' }, 'the OTLP endpoint must be an http or https URL'],
  ])('are refused where they are wrong: %j', (env, message) => {
    const read = () => traceSettings({ ...ENDPOINT, ...env })
    expect(read).toThrow(ConfigError)
    expect(read).toThrow(message)
  })

  it.each([{ OTEL_SDK_DISABLED: 'TRUE' }, { OTEL_TRACES_EXPORTER: 'none' }, { OTEL_EXPORTER_OTLP_ENDPOINT: ' ' }])(
    'are none with %j',
    (env) => {
      expect(traceSettings({ ...ENDPOINT, ...env })).toBeUndefined()
    },
  )

  it('are those of the specification where nothing is said', () => {
    expect(traceSettings(ENDPOINT)).toEqual({
      url: 'http://127.0.0.1:4318/v1/traces',
      protocol: 'http/protobuf',
      headers: {},
      timeoutMs: 10_000,
      isCompressed: false,
      files: {},
      sampler: 'parentbased_always_on',
      ratio: 1,
      batch: {},
    })
  })

  it('of traces go before those of everything, and a name of a sampler is no matter of case', () => {
    const env = {
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
      OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json',
      OTEL_TRACES_SAMPLER: 'TraceIdRatio',
      OTEL_TRACES_SAMPLER_ARG: '0.25',
      OTEL_BSP_SCHEDULE_DELAY: '500',
    }
    expect(traceSettings({ ...ENDPOINT, ...env })).toMatchObject({
      protocol: 'http/json',
      sampler: 'traceidratio',
      ratio: 0.25,
      batch: { scheduledDelayMillis: 500 },
    })
  })
  it('name the endpoint, its headers, deadline and files; those of traces go before those of all signals', () => {
    const settings = traceSettings({
      OTEL_EXPORTER_OTLP_ENDPOINT: 'https://otel.example/base/',
      OTEL_EXPORTER_OTLP_HEADERS: 'Authorization=Bearer%20abc, x-tenant=blue',
      OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'x-tenant=red',
      OTEL_EXPORTER_OTLP_TIMEOUT: '2000',
      OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
      OTEL_EXPORTER_OTLP_CERTIFICATE: '/ca.crt',
      OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE: '/tls.crt',
      OTEL_EXPORTER_OTLP_CLIENT_KEY: '/tls.key',
    })
    expect(settings).toMatchObject({
      url: 'https://otel.example/base/v1/traces',
      timeoutMs: 2000,
      isCompressed: true,
      files: { ca: '/ca.crt', client: { certificate: '/tls.crt', key: '/tls.key' } },
    })
    const headers = Object.entries(settings?.headers ?? {}).map(([name, value]) => [name, value.reveal()])
    expect(Object.fromEntries(headers)).toEqual({ authorization: 'Bearer abc', 'x-tenant': 'red' })
    const exact = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://otel.example/exactly' }
    expect(traceSettings({ ...ENDPOINT, ...exact })?.url).toBe('https://otel.example/exactly')
  })
})
