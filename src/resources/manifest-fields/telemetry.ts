import { supported, ignored, type FieldTable } from './verdict.ts'

const SCRAPED = ignored('metrics are scraped from the admin listener, and not sent')

/** Support of each field of an MCPTelemetryConfig; `telemetry` of a workload has some of them. */
export const TELEMETRY_FIELDS: FieldTable = {
  'openTelemetry.enabled': supported('absent: nothing is sent'),
  'openTelemetry.endpoint': supported('OTLP over HTTP, protobuf, at `/v1/traces`; a URL, or a host and port'),
  'openTelemetry.insecure': supported(
    'plain http beyond loopback is refused without it, and it is refused beside https',
  ),
  'openTelemetry.headers': supported(),
  'openTelemetry.sensitiveHeaders': supported('read again when the Secret changes'),
  'openTelemetry.caBundleRef': supported('found beside the secrets, as `<name>/<key>`'),
  'openTelemetry.resourceAttributes': supported(),
  'openTelemetry.tracing': supported('the sampling decision of the client is followed'),
  'openTelemetry.metrics.enabled': SCRAPED,
  'openTelemetry.useLegacyAttributes': ignored("attributes have the names of OpenTelemetry's conventions"),
  'prometheus.enabled': SCRAPED,
}
