import {
  type OpenTelemetrySettings,
  type ResolvedTelemetry,
  type TelemetryConfigRef,
  tracesUrl,
} from '../../resources/index.ts'
import type { Loaded } from '../documents/loaded.ts'
import type { Workload } from '../workloads/workload.ts'
import { fileOfBundle } from './resolve-manifest-callers.ts'

/** Default sampling rate of traces that begin here, as in the kind's definition elsewhere. */
const DEFAULT_RATE = 0.05

/**
 * The trace receiver of a manifest's routes; undefined if it configures none, disables tracing, or has an unresolved
 * reference, which has been reported.
 */
export function telemetryOfManifest(
  { metadata, telemetry }: Workload,
  { telemetryConfigs }: Loaded,
  secretsDirectory: string,
): ResolvedTelemetry | undefined {
  if (telemetry === undefined) return undefined
  const { name, namespace } = metadata
  const { reference } = telemetry
  if (reference === undefined) {
    const { openTelemetry } = telemetry.inline
    return openTelemetry && resolved(openTelemetry, { of: `${namespace}/${name}`, name, namespace, secretsDirectory })
  }
  const config = telemetryConfigs.find(
    ({ document: one }) => one.metadata.name === reference.name && one.metadata.namespace === namespace,
  )
  const { openTelemetry } = config?.document.spec ?? {}
  if (openTelemetry === undefined) return undefined
  const of = `${namespace}/${reference.name}`
  return resolved(openTelemetry, { of, name: serviceOf(reference, name), namespace, secretsDirectory })
}

const serviceOf = ({ serviceName }: TelemetryConfigRef, name: string): string => serviceName || name

interface Place {
  /** The owner of the settings. */
  readonly of: string
  /** `service.name`, unless the settings define one. */
  readonly name: string
  readonly namespace: string
  readonly secretsDirectory: string
}

function resolved(
  settings: OpenTelemetrySettings,
  { of, name, namespace, secretsDirectory }: Place,
): ResolvedTelemetry | undefined {
  const { enabled, endpoint, insecure, tracing, caBundleRef: bundle } = settings
  if (enabled !== true || tracing?.enabled !== true || endpoint === undefined) return undefined
  const url = tracesUrl(endpoint, insecure)
  if (url === undefined) return undefined
  return {
    name: of,
    url: url.href,
    headers: headersOf(settings.headers),
    secretHeaders: (settings.sensitiveHeaders ?? []).map((one) => ({ name: one.name, ref: one.secretKeyRef })),
    caCertPath: bundle && fileOfBundle(bundle, secretsDirectory),
    samplingRate: tracing.samplingRate === undefined ? DEFAULT_RATE : Number(tracing.samplingRate),
    attributes: {
      'service.namespace': namespace,
      ...settings.resourceAttributes,
      'service.name': settings.serviceName || name,
    },
  }
}

/** Headers given as an object, or as NAME=VALUE strings. */
function headersOf(headers: OpenTelemetrySettings['headers'] = []): Readonly<Record<string, string>> {
  if (!isList(headers)) return headers
  return Object.fromEntries(
    headers.map((text) => [text.slice(0, text.indexOf('=')), text.slice(text.indexOf('=') + 1)]),
  )
}

const isList = (value: object): value is readonly string[] => Array.isArray(value)
