import type { z } from 'zod'
import { API_VERSIONS, DEFAULT_API_GROUP, NEWEST_VERSION } from '../documents/document-kinds.ts'
import {
  externalAuthConfig,
  mcpOidcConfig,
  mcpTelemetryConfig,
  mcpToolConfig,
  referringStatus,
  WORKLOAD_KINDS,
  workload,
} from '../../resources/index.ts'
import { UNSTRUCTURED } from '../../fields/index.ts'
import { inputSchema, type Json } from './json-schema.ts'
import { describedOnce, withoutDescriptions } from './descriptions.ts'

/** The kinds that a cluster stores. */
export const CRD_KINDS = [
  'MCPExternalAuthConfig',
  'MCPOIDCConfig',
  'MCPTelemetryConfig',
  'MCPToolConfig',
  ...WORKLOAD_KINDS,
] as const
export type CrdKind = (typeof CRD_KINDS)[number]

interface CrdNames {
  readonly plural: string
  readonly shortNames?: readonly string[]
  readonly description: string
  readonly columns: readonly Json[]
  /** Its spec and status contain fields of other controllers, which are preserved. */
  readonly isForeign: boolean
}

const column = (name: string, jsonPath: string, more: Json = {}): Json => ({ name, type: 'string', jsonPath, ...more })
const conditionColumn = (name: string, more: Json = {}): Json =>
  column(name, `.status.conditions[?(@.type=="${name}")].status`, more)
/** The reason of the Ready condition. */
const REASON = column('Reason', '.status.conditions[?(@.type=="Ready")].reason')
const AGE = { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' }
const CONFIG = column('Config', '.spec.externalAuthConfigRef.name')
/** Columns of kinds that workloads reference. */
const CONFIG_COLUMNS = [
  column('Type', '.spec.type'),
  conditionColumn('Valid'),
  conditionColumn('Ready'),
  REASON,
  column('References', '.status.referenceCount', { type: 'integer' }),
  column('Hash', '.status.configHash', { priority: 1 }),
  AGE,
]

const NAMES: Readonly<Record<CrdKind, CrdNames>> = {
  MCPExternalAuthConfig: {
    plural: 'mcpexternalauthconfigs',
    shortNames: ['extauth', 'mcpextauth'],
    description: 'How an MCP server or proxy authenticates to an external service.',
    columns: CONFIG_COLUMNS,
    isForeign: false,
  },
  MCPOIDCConfig: {
    plural: 'mcpoidcconfigs',
    shortNames: ['mcpoidc'],
    description: 'Who may call the MCP servers and proxies that refer to it.',
    columns: CONFIG_COLUMNS,
    isForeign: false,
  },
  MCPTelemetryConfig: {
    plural: 'mcptelemetryconfigs',
    shortNames: ['mcpotel'],
    description: 'Where the traces of the MCP proxies that refer to it go.',
    columns: [column('Endpoint', '.spec.openTelemetry.endpoint'), ...CONFIG_COLUMNS.slice(1)],
    isForeign: false,
  },
  MCPToolConfig: {
    plural: 'mcptoolconfigs',
    shortNames: ['mcptc'],
    description: 'The tools that callers of the MCP proxies that refer to it may use.',
    columns: CONFIG_COLUMNS.slice(1),
    isForeign: false,
  },
  MCPRemoteProxy: {
    plural: 'mcpremoteproxies',
    shortNames: ['mcprp'],
    description: 'A proxy of its own in front of a remote MCP server.',
    columns: [
      conditionColumn('Ready'),
      REASON,
      column('Replicas', '.status.replicas', { type: 'integer' }),
      CONFIG,
      column('URL', '.status.url'),
      column('Service', '.status.serviceName'),
      AGE,
    ],
    isForeign: false,
  },
  MCPServerEntry: {
    plural: 'mcpserverentries',
    shortNames: ['mcpentry'],
    description: 'A remote MCP server that others refer to.',
    columns: [conditionColumn('Ready'), REASON, column('URL', '.spec.remoteUrl'), CONFIG, AGE],
    isForeign: false,
  },
  MCPServer: {
    plural: 'mcpservers',
    description: 'An MCP server that runs in the cluster; only its references to MCPExternalAuthConfig are read here.',
    columns: [conditionColumn('Ready'), REASON, CONFIG, AGE],
    isForeign: true,
  },
  VirtualMCPServer: {
    plural: 'virtualmcpservers',
    description: 'Several MCP servers behind one address.',
    columns: [
      conditionColumn('Ready'),
      REASON,
      column('Default', '.spec.outgoingAuth.default.externalAuthConfigRef.name'),
      AGE,
    ],
    isForeign: true,
  },
}

/**
 * The CustomResourceDefinition of a supported kind: both versions share one structural schema with defaults,
 * cross-field rules as `x-kubernetes-validations`, short names, printer columns and the status subresource. Only the
 * newest version has descriptions, once per shape. `apiGroup` is `extauth.dev` unless the operator uses another
 * (decisions §1).
 */
export function customResourceDefinition(
  apiGroup: string = DEFAULT_API_GROUP,
  kind: CrdKind = 'MCPExternalAuthConfig',
): Json {
  const { plural, shortNames, columns } = NAMES[kind]
  const schema = openApiSchema(kind)
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${apiGroup}` },
    spec: {
      group: apiGroup,
      names: {
        kind,
        listKind: `${kind}List`,
        plural,
        singular: kind.toLowerCase(),
        ...(shortNames === undefined ? {} : { shortNames }),
        categories: ['mcp'],
      },
      scope: 'Namespaced',
      conversion: { strategy: 'None' },
      versions: API_VERSIONS.map((name) => ({
        name,
        served: true,
        storage: name === NEWEST_VERSION,
        additionalPrinterColumns: columns,
        schema: {
          openAPIV3Schema: name === NEWEST_VERSION ? describedOnce(schema) : withoutDescriptions(schema),
        },
        subresources: { status: {}, ...(kind === 'MCPRemoteProxy' ? { scale: SCALE } : {}) },
      })),
    },
  }
}

/** The scale subresource, for `kubectl scale` and autoscalers of the proxy. */
const SCALE = {
  specReplicasPath: '.spec.replicas',
  statusReplicasPath: '.status.replicas',
  labelSelectorPath: '.status.selector',
}

function openApiSchema(kind: CrdKind): Json {
  const { description, isForeign } = NAMES[kind]
  const { spec, status } = schemaOf(kind).shape
  const foreign = isForeign ? { 'x-kubernetes-preserve-unknown-fields': true } : {}
  return {
    type: 'object',
    description,
    required: ['spec'],
    properties: {
      apiVersion: { type: 'string' },
      kind: { type: 'string' },
      metadata: { type: 'object' },
      spec: { description: 'What is wanted.', ...structural(spec, isForeign), ...foreign },
      status: {
        description: 'What was found; not written by people.',
        ...(hasOwnStatus(kind)
          ? { ...structural(status, false), default: NOT_RECONCILED }
          : {
              ...structural(referringStatus(), false),
              default: NOT_RECONCILED,
              'x-kubernetes-preserve-unknown-fields': true,
            }),
      },
    },
  }
}

const schemaOf = (kind: CrdKind) => {
  if (kind === 'MCPExternalAuthConfig') return externalAuthConfig()
  if (kind === 'MCPTelemetryConfig') return mcpTelemetryConfig()
  if (kind === 'MCPToolConfig') return mcpToolConfig()
  return kind === 'MCPOIDCConfig' ? mcpOidcConfig() : workload(kind)
}

/**
 * No valid generation: tools that wait for readiness (kstatus, Flux) would treat an object without a status as ready.
 */
const NOT_RECONCILED = { observedGeneration: -1 }

/** The kinds whose status only this operator writes. */
const hasOwnStatus = (kind: CrdKind): boolean =>
  kind === 'MCPRemoteProxy' || !WORKLOAD_KINDS.some((one) => one === kind)

/** Converts a zod schema into a structural schema: only keywords that a CRD allows, rules as CEL. */
function structural(schema: z.ZodType, isForeign: boolean): Json {
  const json = inputSchema(schema, (part, rules) => {
    const validations = rules.flatMap(({ cel, message }) => (cel === undefined ? [] : [{ rule: cel, message }]))
    if (validations.length > 0) part['x-kubernetes-validations'] = validations
  })
  return toStructural(json, isForeign)
}

/** JSON Schema keywords that structural schemas accept unchanged. */
const KEPT = [
  'type',
  'description',
  'format',
  'enum',
  'pattern',
  'minLength',
  'maxLength',
  'minimum',
  'maximum',
  'minItems',
  'maxItems',
  'maxProperties',
  'required',
  'default',
  'x-kubernetes-list-type',
  'x-kubernetes-list-map-keys',
  'x-kubernetes-validations',
  'x-kubernetes-preserve-unknown-fields',
  'x-kubernetes-int-or-string',
] as const

/** Keywords without use in a structural schema: maps and lists are handled below, unknown fields are pruned. */
const LEFT_OUT: ReadonlySet<string> = new Set([
  '$schema',
  'properties',
  'additionalProperties',
  'propertyNames',
  'items',
])

function toStructural(schema: Json, isForeign: boolean): Json {
  if ('const' in schema) {
    const { const: only, ...rest } = schema
    return toStructural({ ...rest, enum: [only] }, isForeign)
  }
  const text = textOrNumber(schema)
  if (text !== undefined) {
    const { anyOf: _both, ...rest } = schema
    const { pattern, maxLength } = text
    return toStructural({ ...rest, pattern, maxLength, 'x-kubernetes-int-or-string': true }, isForeign)
  }
  if (Object.keys(UNSTRUCTURED).some((mark) => mark in schema))
    return {
      type: 'object',
      ...(schema.description === undefined ? {} : { description: schema.description }),
      'x-kubernetes-preserve-unknown-fields': true,
    }
  const result: Json = {}
  const lost = Object.keys(schema).find((keyword) => !isKept(keyword) && !LEFT_OUT.has(keyword))
  // The cluster would silently skip this check: declare it as a `Rule` with CEL.
  if (lost !== undefined) throw new Error(`the CRD cannot express "${lost}"`)
  for (const keyword of KEPT) {
    if (schema[keyword] !== undefined) result[keyword] = schema[keyword]
  }
  // The pattern already implies the minimum length.
  if (typeof result.pattern === 'string' && result.minLength === 1 && !new RegExp(result.pattern, 'u').test(''))
    delete result.minLength
  // Times are checked by their format; zod's pattern for calendars is unreadable in a CRD.
  if (result.format === 'date-time') delete result.pattern
  const more = schema.additionalProperties
  const isOpen = isSchema(more) && Object.keys(more).length === 0
  if (isSchema(schema.properties)) {
    const properties = Object.entries(schema.properties)
    // A server does not store an empty map, so comparisons would always find a difference.
    if (properties.length > 0)
      result.properties = Object.fromEntries(
        properties.map(([name, property]) => [name, toStructural(property as Json, isForeign)]),
      )
    // Unread fields of supported kinds are pruned; fields of other controllers are preserved.
    if (isOpen && isForeign) result['x-kubernetes-preserve-unknown-fields'] = true
  } else if (isOpen) {
    result['x-kubernetes-preserve-unknown-fields'] = true
  } else if (isSchema(more)) {
    // `properties` and `additionalProperties` exclude each other in a CRD: unknown fields are pruned instead.
    result.additionalProperties = toStructural(more, isForeign)
  }
  if (isSchema(schema.items)) result.items = toStructural(schema.items, isForeign)
  // Any value.
  if (result.type === undefined && result['x-kubernetes-int-or-string'] === undefined)
    result['x-kubernetes-preserve-unknown-fields'] = true
  return result
}

/** The string variant of a string or integer (a size), the only union that structural schemas support. */
function textOrNumber({ anyOf }: Json): Json | undefined {
  if (!Array.isArray(anyOf) || anyOf.length !== 2) return undefined
  const parts = anyOf.filter(isSchema)
  const text = parts.find(({ type }) => type === 'string')
  return parts.some(({ type }) => type === 'integer') ? text : undefined
}

const isKept = (keyword: string): boolean => KEPT.some((kept) => kept === keyword)

const isSchema = (value: unknown): value is Json => typeof value === 'object' && value !== null
