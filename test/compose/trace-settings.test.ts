import { describe, expect, it } from 'vitest'
import { ConfigError } from '../../src/compose/index.ts'
import { traceSettings } from '../../src/compose/trace-settings.ts'

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
      protocol: 'http/protobuf',
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
    expect(traceSettings({ ...ENDPOINT, ...env })).toEqual({
      protocol: 'http/json',
      sampler: 'traceidratio',
      ratio: 0.25,
      batch: { scheduledDelayMillis: 500 },
    })
  })
})
