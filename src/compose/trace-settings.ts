import { Secret } from '../core/index.ts'
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

/** Whether `OTEL_SDK_DISABLED` is true or `OTEL_TRACES_EXPORTER` is none; this overrides documents. */
export const tracesAreOff = (env: Env): boolean =>
  env['OTEL_SDK_DISABLED']?.trim().toLowerCase() === 'true' || env['OTEL_TRACES_EXPORTER']?.trim() === 'none'

/**
 * Reads the OpenTelemetry environment variables. Undefined if traces are off: no OTLP endpoint is set,
 * `OTEL_SDK_DISABLED` is true or `OTEL_TRACES_EXPORTER` is none. Throws `ConfigError`.
 */
export function traceSettings(env: Env): TraceSettings | undefined {
  const text = (name: string): string | undefined => env[name]?.trim() || undefined
  /** A variable of the exporter: the one for traces overrides the one for all signals. */
  const exported = (name: string): string | undefined =>
    text(`OTEL_EXPORTER_OTLP_TRACES_${name}`) ?? text(`OTEL_EXPORTER_OTLP_${name}`)
  const endpoint = exported('ENDPOINT')
  if (endpoint === undefined || tracesAreOff(env)) return undefined
  const exporter = text('OTEL_TRACES_EXPORTER') ?? 'otlp'
  if (exporter === 'none') return undefined
  if (exporter !== 'otlp') throw refused('OTEL_TRACES_EXPORTER must be otlp or none')
  if (!/^https?:$/.test(URL.parse(endpoint)?.protocol ?? ''))
    throw refused('the OTLP endpoint must be an http or https URL')
  const protocol = exported('PROTOCOL') ?? 'http/protobuf'
  if (protocol !== 'http/protobuf' && protocol !== 'http/json')
    throw refused('OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf or http/json')
  const wanted = text('OTEL_TRACES_SAMPLER') ?? 'parentbased_always_on'
  const sampler = SAMPLERS.find((name) => name === wanted.toLowerCase())
  if (sampler === undefined) throw refused(`OTEL_TRACES_SAMPLER must be one of ${SAMPLERS.join(', ')}`)
  const ratio = Number(text('OTEL_TRACES_SAMPLER_ARG') ?? '1')
  if (sampler.endsWith('traceidratio') && !(ratio >= 0 && ratio <= 1))
    throw refused('OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1')
  const compression = exported('COMPRESSION') ?? 'none'
  if (compression !== 'none' && compression !== 'gzip')
    throw refused('OTEL_EXPORTER_OTLP_COMPRESSION must be gzip or none')
  return {
    // The variable for all signals is a base URL; the one for traces is used unchanged.
    url: text('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT') ?? `${endpoint.replace(/\/$/, '')}/v1/traces`,
    protocol,
    headers: {
      ...headersIn(text('OTEL_EXPORTER_OTLP_HEADERS')),
      ...headersIn(text('OTEL_EXPORTER_OTLP_TRACES_HEADERS')),
    },
    timeoutMs: wholeNumber('OTEL_EXPORTER_OTLP_TIMEOUT', exported('TIMEOUT')) ?? DEFAULT_TIMEOUT_MS,
    isCompressed: compression === 'gzip',
    files: filesIn(exported),
    sampler,
    ratio,
    batch: batchOf(text),
  }
}

const DEFAULT_TIMEOUT_MS = 10_000

/** Parses `name=value,other=value`, percent-encoded as in W3C Baggage. */
function headersIn(list: string | undefined): Record<string, Secret> {
  const entries = (list ?? '').split(',').filter((entry) => entry.trim() !== '')
  return Object.fromEntries(
    entries.map((entry) => {
      const mark = entry.indexOf('=')
      const name = entry.slice(0, Math.max(mark, 0)).trim().toLowerCase()
      if (!/^[!#$%&'*+.^_`|~\w-]+$/.test(name))
        throw refused('OTEL_EXPORTER_OTLP_HEADERS must be name=value,name=value')
      try {
        return [name, new Secret(decodeURIComponent(entry.slice(mark + 1).trim()))]
      } catch {
        throw refused(`OTEL_EXPORTER_OTLP_HEADERS: the value of ${name} has an invalid percent-encoding`)
      }
    }),
  )
}

function filesIn(exported: (name: string) => string | undefined): TraceSettings['files'] {
  const [ca, certificate, key] = ['CERTIFICATE', 'CLIENT_CERTIFICATE', 'CLIENT_KEY'].map(exported)
  if ((certificate === undefined) !== (key === undefined))
    throw refused('OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and OTEL_EXPORTER_OTLP_CLIENT_KEY belong together')
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(certificate === undefined || key === undefined ? {} : { client: { certificate, key } }),
  }
}

function wholeNumber(name: string, value: string | undefined): number | undefined {
  if (value === undefined) return undefined
  if (!/^[1-9]\d{0,8}$/.test(value)) throw refused(`${name} must be a whole number above zero`)
  return Number(value)
}

const BATCH = {
  scheduledDelayMillis: 'OTEL_BSP_SCHEDULE_DELAY',
  maxQueueSize: 'OTEL_BSP_MAX_QUEUE_SIZE',
  maxExportBatchSize: 'OTEL_BSP_MAX_EXPORT_BATCH_SIZE',
  exportTimeoutMillis: 'OTEL_BSP_EXPORT_TIMEOUT',
} as const

function batchOf(text: (name: string) => string | undefined): TraceSettings['batch'] {
  const entries = Object.entries(BATCH).flatMap(([field, name]) => {
    const value = wholeNumber(name, text(name))
    return value === undefined ? [] : [[field, value]]
  })
  return Object.fromEntries(entries) as TraceSettings['batch']
}
