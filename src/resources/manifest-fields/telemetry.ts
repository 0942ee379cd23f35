import { runs, told, type FieldTable } from './verdict.ts'

const SCRAPED = told('metrics are scraped from the admin listener, and not sent')

/** Support of each field of an MCPTelemetryConfig; `telemetry` of a workload has some of them. */
export const TELEMETRY_FIELDS: FieldTable = {
  'openTelemetry.enabled': runs('absent: nothing is sent'),
  'openTelemetry.endpoint': runs('OTLP over HTTP, protobuf, at `/v1/traces`; a URL, or a host and port'),
  'openTelemetry.insecure': runs('plain http beyond loopback is refused without it, and it is refused beside https'),
  'openTelemetry.headers': runs(),
  'openTelemetry.sensitiveHeaders': runs('read again when the Secret changes'),
  'openTelemetry.caBundleRef': runs('found beside the secrets, as `<name>/<key>`'),
  'openTelemetry.resourceAttributes': runs(),
  'openTelemetry.tracing': runs('a trace that a client has begun is followed as the client says'),
  'openTelemetry.metrics.enabled': SCRAPED,
  'openTelemetry.useLegacyAttributes': told("attributes have the names of OpenTelemetry's conventions"),
  'prometheus.enabled': SCRAPED,
}
