import { z } from 'zod'
import { isLoopbackHost, plainHeaderName } from '../../core/index.ts'
import {
  headerName,
  HTTP_PLACE,
  injectable,
  isRecord,
  objectName,
  type Rule,
  secretRef,
  type SecretRef,
  withCel,
  withRules,
} from '../../fields/index.ts'
import { caBundleRef, type CaBundleRef } from '../ca-bundle.ts'
import { referredConfig, type ReferredConfig } from '../referred-config.ts'
import { MAX_HEADERS, plainHeaders } from './header-forward.ts'

const flag = () => z.boolean().optional()

const withScheme = (endpoint: string, scheme: string): string =>
  /^https?:\/\//.test(endpoint) ? endpoint : `${scheme}://${endpoint}`

/** The URL for spans (OTLP/HTTP); undefined for an invalid endpoint. */
export function tracesUrl(endpoint: string, insecure: boolean | undefined): URL | undefined {
  const url = URL.parse(withScheme(endpoint, insecure === true ? 'http' : 'https'))
  if (url === null) return undefined
  const path = url.pathname.replace(/\/+$/, '')
  url.pathname = path.endsWith('/v1/traces') ? path : `${path}/v1/traces`
  return url
}

/** A receiver's endpoint in manifests of other programs: often without a scheme, which `insecure` then determines. */
const endpoint = () =>
  withCel(
    z
      .string()
      .max(2048)
      .regex(HTTP_PLACE, {
        error: 'expected HOST:PORT, or an http or https URL without user information and query',
        abort: true,
      })
      .refine((text) => URL.canParse(withScheme(text, 'https')), { error: 'expected a host that can be one' }),
    "isURL(self.matches('^https?://') ? self : 'https://' + self)",
    'expected a host that can be one',
  )

const isPlainAway = (url: unknown): boolean =>
  typeof url === 'string' && url.startsWith('http://') && URL.canParse(url) && !isLoopbackHost(new URL(url).hostname)

const RULES: readonly Rule[] = [
  {
    message: 'goes over plain http to another machine, expected https, or "insecure: true"',
    at: 'endpoint',
    holds: ({ enabled, endpoint: url, insecure }) => enabled !== true || insecure === true || !isPlainAway(url),
  },
  {
    message: 'must be absent or false for an https endpoint',
    at: 'insecure',
    holds: ({ endpoint: url, insecure }) => insecure !== true || typeof url !== 'string' || !url.startsWith('https://'),
    cel: "!has(self.insecure) || !self.insecure || !has(self.endpoint) || !self.endpoint.startsWith('https://')",
    json: {
      not: {
        properties: { insecure: { const: true }, endpoint: { pattern: '^https://' } },
        required: ['insecure', 'endpoint'],
      },
    },
  },
  {
    message: 'duplicate header, expected each once, however it is spelled',
    at: 'sensitiveHeaders',
    holds: (value) => {
      const names = namesIn(value).map(plainHeaderName)
      return new Set(names).size === names.length
    },
  },
  {
    message: 'expected no "Content-…" header: the exporter sets them',
    at: 'headers',
    holds: (value) => !namesIn(value).some((name) => /^content-/i.test(name)),
  },
]

const BUNDLE: Rule = {
  message: '"caBundleRef" is for https, and "insecure" means plain http; expected one of them',
  at: 'caBundleRef',
  holds: ({ caBundleRef: bundle, insecure }) => bundle === undefined || insecure !== true,
  cel: '!has(self.caBundleRef) || !has(self.insecure) || !self.insecure',
  json: { not: { properties: { insecure: { const: true } }, required: ['insecure', 'caBundleRef'] } },
}

/** Header names; the value may be invalid. */
function namesIn({ headers, sensitiveHeaders }: Readonly<Record<string, unknown>>): string[] {
  const rows: unknown[] = Array.isArray(sensitiveHeaders) ? sensitiveHeaders : []
  const plain: unknown[] = Array.isArray(headers) ? headers : isRecord(headers) ? Object.keys(headers) : []
  return [
    ...plain.flatMap((one) => (typeof one === 'string' ? [one.split('=', 1)[0] ?? ''] : [])),
    ...rows.flatMap((row) => (isRecord(row) && typeof row['name'] === 'string' ? [row['name']] : [])),
  ]
}

const MAX_ATTRIBUTES = 64

const common = () => ({
  enabled: flag().describe('Whether anything is sent. Default false.'),
  endpoint: endpoint().optional().describe('The receiver: HOST:PORT, or a URL; `/v1/traces` is put behind it.'),
  insecure: flag().describe('Plain http for an endpoint without a scheme, and beyond loopback. Default false.'),
  tracing: z
    .strictObject({
      enabled: flag().describe('Whether traces are sent. Default false.'),
      samplingRate: z
        .string()
        .max(32)
        .regex(/^(0(\.[0-9]+)?|1(\.0+)?)$/, { error: 'expected a number from 0 to 1' })
        .optional()
        .describe('Share of the traces that begin here. Default 0.05.'),
    })
    .optional()
    .describe('Traces.'),
  metrics: z
    .strictObject({ enabled: flag().describe('Not read: metrics are scraped.') })
    .optional()
    .describe('Not read: metrics are scraped.'),
  useLegacyAttributes: flag().describe("Not read: attributes have the names of OpenTelemetry's conventions."),
})

const prometheus = () =>
  z
    .strictObject({ enabled: flag().describe('Not read: metrics are served by the admin listener.') })
    .optional()
    .describe('Not read: metrics are served by the admin listener.')

const secretHeader = () =>
  withRules(
    z.strictObject({
      name: headerName().min(1).describe('Name of the header.'),
      secretKeyRef: secretRef('header value').describe('Secret holding its value.'),
    }),
    [injectable('name')],
  )

const spec = () =>
  z.strictObject({
    openTelemetry: withRules(
      z.strictObject({
        ...common(),
        headers: plainHeaders().optional().describe('Headers with their values.'),
        sensitiveHeaders: z
          .array(secretHeader())
          .max(MAX_HEADERS)
          .optional()
          .describe('Headers whose values are secrets.'),
        caBundleRef: caBundleRef().optional().describe('CA certificates that replace the system roots.'),
        resourceAttributes: withCel(
          z.record(z.string().min(1).max(256), z.string().max(4096)).meta({ maxProperties: MAX_ATTRIBUTES }),
          'self.all(name, size(name) >= 1 && size(name) <= 256)',
          'expected names of at most 256 characters',
        )
          .refine((map) => Object.keys(map).length <= MAX_ATTRIBUTES, {
            error: `expected at most ${MAX_ATTRIBUTES} attributes`,
          })
          .optional()
          .describe('Attributes of the resource that spans belong to.'),
      }),
      [...RULES, BUNDLE],
    )
      .optional()
      .describe('Traces over OTLP/HTTP.'),
    prometheus: prometheus(),
  })

/**
 * The resource MCPTelemetryConfig: trace receivers for all workloads that reference it (`telemetryConfigRef`). Extends
 * the specification.
 */
export const mcpTelemetryConfig = () => referredConfig('MCPTelemetryConfig', spec())

export interface MCPTelemetryConfig extends ReferredConfig<'MCPTelemetryConfig', z.output<ReturnType<typeof spec>>> {}

const serviceName = () =>
  z.string().max(253).optional().describe('`service.name` of its spans; the name of the workload when absent.')

export const TRACES = 'Where traces go, from an MCPTelemetryConfig.'

/** `telemetryConfigRef` of a workload. */
export const telemetryConfigRef = () =>
  z.looseObject({
    name: objectName().describe('Name of an MCPTelemetryConfig in the same namespace.'),
    serviceName: serviceName(),
  })
export type TelemetryConfigRef = z.output<ReturnType<typeof telemetryConfigRef>>

/** `telemetry` of a workload: the older inline form, without secrets and CA certificates. */
export const inlineTelemetry = () =>
  z.looseObject({
    openTelemetry: withRules(
      z.looseObject({
        ...common(),
        serviceName: serviceName(),
        headers: z
          .array(
            z
              .string()
              .max(8450)
              .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}=[\x20-\x7e]+$/, { error: 'expected NAME=VALUE' }),
          )
          .max(MAX_HEADERS)
          .optional()
          .describe('Headers, each as NAME=VALUE.'),
      }),
      RULES,
    )
      .optional()
      .describe('Traces over OTLP/HTTP.'),
    prometheus: prometheus(),
  })
export type InlineTelemetry = z.output<ReturnType<typeof inlineTelemetry>>

/** OpenTelemetry settings from either document. */
export interface OpenTelemetrySettings {
  readonly enabled?: boolean | undefined
  readonly endpoint?: string | undefined
  readonly insecure?: boolean | undefined
  readonly tracing?: { readonly enabled?: boolean | undefined; readonly samplingRate?: string | undefined } | undefined
  readonly headers?: Readonly<Record<string, string>> | readonly string[] | undefined
  readonly sensitiveHeaders?: readonly { readonly name: string; readonly secretKeyRef: SecretRef }[] | undefined
  readonly caBundleRef?: CaBundleRef | undefined
  readonly resourceAttributes?: Readonly<Record<string, string>> | undefined
  readonly serviceName?: string | undefined
}
