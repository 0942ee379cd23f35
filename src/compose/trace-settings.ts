import type { SamplerName, TraceSettings } from '../telemetry/index.ts'
import { ConfigError } from './config-error.ts'

type Env = Readonly<Record<string, string | undefined>>

const SAMPLERS: readonly SamplerName[] = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
]

const refused = (text: string): ConfigError => new ConfigError([text])

/** `OTEL_SDK_DISABLED` is true, or `OTEL_TRACES_EXPORTER` none: nothing is sent, whatever documents say. */
export const tracesAreOff = (env: Env): boolean =>
  env['OTEL_SDK_DISABLED']?.trim().toLowerCase() === 'true' || env['OTEL_TRACES_EXPORTER']?.trim() === 'none'

/**
 * Reads them (OpenTelemetry specification, environment variables); undefined when traces are off: no OTLP endpoint is named,
 * `OTEL_SDK_DISABLED` is true or `OTEL_TRACES_EXPORTER` is none. Throws `ConfigError`.
 */
export function traceSettings(env: Env): TraceSettings | undefined {
  const text = (name: string): string | undefined => env[name]?.trim() || undefined
  const endpoint = text('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT') ?? text('OTEL_EXPORTER_OTLP_ENDPOINT')
  if (endpoint === undefined || tracesAreOff(env)) return undefined
  const exporter = text('OTEL_TRACES_EXPORTER') ?? 'otlp'
  if (exporter === 'none') return undefined
  if (exporter !== 'otlp') throw refused('OTEL_TRACES_EXPORTER must be otlp or none')
  if (!/^https?:$/.test(URL.parse(endpoint)?.protocol ?? ''))
    throw refused('the OTLP endpoint must be an http or https URL')
  const protocol = text('OTEL_EXPORTER_OTLP_TRACES_PROTOCOL') ?? text('OTEL_EXPORTER_OTLP_PROTOCOL') ?? 'http/protobuf'
  if (protocol !== 'http/protobuf' && protocol !== 'http/json')
    throw refused('OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf or http/json')
  const wanted = text('OTEL_TRACES_SAMPLER') ?? 'parentbased_always_on'
  const sampler = SAMPLERS.find((name) => name === wanted.toLowerCase())
  if (sampler === undefined) throw refused(`OTEL_TRACES_SAMPLER must be one of ${SAMPLERS.join(', ')}`)
  const ratio = Number(text('OTEL_TRACES_SAMPLER_ARG') ?? '1')
  if (sampler.endsWith('traceidratio') && !(ratio >= 0 && ratio <= 1))
    throw refused('OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1')
  return { protocol, sampler, ratio, batch: batchOf(text) }
}

const BATCH = {
  scheduledDelayMillis: 'OTEL_BSP_SCHEDULE_DELAY',
  maxQueueSize: 'OTEL_BSP_MAX_QUEUE_SIZE',
  maxExportBatchSize: 'OTEL_BSP_MAX_EXPORT_BATCH_SIZE',
  exportTimeoutMillis: 'OTEL_BSP_EXPORT_TIMEOUT',
} as const

function batchOf(text: (name: string) => string | undefined): TraceSettings['batch'] {
  const entries = Object.entries(BATCH).flatMap(([field, name]) => {
    const value = text(name)
    if (value === undefined) return []
    if (!/^[1-9]\d{0,8}$/.test(value)) throw refused(`${name} must be a whole number above zero`)
    return [[field, Number(value)]]
  })
  return Object.fromEntries(entries) as TraceSettings['batch']
}
