import { once } from '../../fields/index.ts'
import {
  asksFor,
  configHash,
  fieldsBelow,
  mcpOidcConfig,
  mcpTelemetryConfig,
  mcpToolConfig,
  TELEMETRY_FIELDS,
  TOOL_FIELDS,
} from '../../resources/index.ts'
import { describedProvider } from '../workloads/manifest-callers.ts'
import type { Reader } from './document-reader.ts'
import type { Located } from './problem.ts'
import { providerHttp } from './warnings.ts'

const oidcSchema = once(mcpOidcConfig)
const telemetrySchema = once(mcpTelemetryConfig)
const toolSchema = once(mcpToolConfig)

/** Adds an MCPOIDCConfig and the problems with its provider URLs. */
export function addOidcConfig(reader: Reader, value: unknown, place: Located<unknown>): void {
  const { loading } = reader
  const document = reader.check(oidcSchema(), value, place)
  if (document === undefined) return
  loading.oidcConfigs.push({ ...place, document, configHash: configHash(document.spec) })
  const { provider, urlPath } = describedProvider(document)
  const { refused, warnings } = providerHttp(place, provider, urlPath)
  loading.problems.push(...refused)
  loading.warnings.push(...warnings)
}

/** Adds an MCPTelemetryConfig, and lists its ignored fields. */
export function addTelemetryConfig(
  reader: Reader,
  value: Readonly<Record<string, unknown>>,
  place: Located<unknown>,
): void {
  const { loading } = reader
  const document = reader.check(telemetrySchema(), value, place)
  if (document === undefined) return
  loading.telemetryConfigs.push({ ...place, document, configHash: configHash(document.spec) })
  for (const [path, { details }] of fieldsBelow(TELEMETRY_FIELDS, '', 'ignored'))
    if (asksFor(document.spec, path, undefined))
      loading.unused.push(place.problem(['spec', ...path.split('.')], `not read here: ${details}`, { at: 'key' }))
}

/** Adds an MCPToolConfig, and warns about fields with which no route may refer to it. */
export function addToolConfig(reader: Reader, value: unknown, place: Located<unknown>): void {
  const { loading } = reader
  const document = reader.check(toolSchema(), value, place)
  if (document === undefined) return
  loading.toolConfigs.push({ ...place, document, configHash: configHash(document.spec) })
  for (const [path, { details }] of fieldsBelow(TOOL_FIELDS, '', 'rejected'))
    if (asksFor(document.spec, path, undefined))
      loading.warnings.push(
        place.problem(['spec', path], `${details}; a proxy that refers to it is refused`, { at: 'key' }),
      )
}
