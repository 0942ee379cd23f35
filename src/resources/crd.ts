import type { z } from 'zod'
import { DEFAULT_API_GROUP } from './document-kinds.ts'
import { externalAuthConfig } from './external-auth.ts'
import { inputSchema, type Json } from './json-schema.ts'

/**
 * The CustomResourceDefinition of MCPExternalAuthConfig: structural schema with defaults, cross-field rules as
 * `x-kubernetes-validations`, short names, printer columns and the status subresource. `apiGroup` is `extauth.dev`
 * unless the operator runs with another (decisions §1).
 */
export function customResourceDefinition(apiGroup: string = DEFAULT_API_GROUP): Json {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `mcpexternalauthconfigs.${apiGroup}` },
    spec: {
      group: apiGroup,
      names: {
        kind: 'MCPExternalAuthConfig',
        listKind: 'MCPExternalAuthConfigList',
        plural: 'mcpexternalauthconfigs',
        singular: 'mcpexternalauthconfig',
        shortNames: ['extauth', 'mcpextauth'],
      },
      scope: 'Namespaced',
      versions: [
        {
          name: 'v1alpha1',
          served: true,
          storage: true,
          additionalPrinterColumns: PRINTER_COLUMNS,
          schema: { openAPIV3Schema: openApiSchema() },
          subresources: { status: {} },
        },
      ],
    },
  }
}

const PRINTER_COLUMNS = [
  { name: 'Type', type: 'string', jsonPath: '.spec.type' },
  { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
  { name: 'Hash', type: 'string', jsonPath: '.status.configHash', priority: 1 },
  { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
]

function openApiSchema(): Json {
  const { spec, status } = externalAuthConfig().shape
  return {
    type: 'object',
    description: 'How an MCP server or proxy authenticates to an external service.',
    required: ['spec'],
    properties: {
      apiVersion: { type: 'string' },
      kind: { type: 'string' },
      metadata: { type: 'object' },
      spec: structural(spec),
      status: structural(status),
    },
  }
}

/** What zod knows, as a structural schema: only the keywords that a CRD may have, rules as CEL. */
function structural(schema: z.ZodType): Json {
  const json = inputSchema(schema, (part, rules) => {
    const validations = rules.flatMap(({ cel, message }) => (cel === undefined ? [] : [{ rule: cel, message }]))
    if (validations.length > 0) part['x-kubernetes-validations'] = validations
  })
  return toStructural(json)
}

/** Keywords of JSON Schema that structural schemas take as they are. */
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
] as const

/** Keywords that say nothing a structural schema needs: maps and lists are read below, unknown fields are pruned. */
const LEFT_OUT: ReadonlySet<string> = new Set([
  '$schema',
  'properties',
  'additionalProperties',
  'propertyNames',
  'items',
])

function toStructural(schema: Json): Json {
  const result: Json = {}
  const lost = Object.keys(schema).find((keyword) => !isKept(keyword) && !LEFT_OUT.has(keyword))
  // A rule that a cluster would silently not check: say it as a `Rule` with CEL.
  if (lost !== undefined) throw new Error(`the CRD can not say "${lost}"`)
  for (const keyword of KEPT) {
    if (schema[keyword] !== undefined) result[keyword] = schema[keyword]
  }
  // Times are checked by their format; zod's pattern of all calendars is no help to anyone who reads the CRD.
  if (result.format === 'date-time') delete result.pattern
  if (isSchema(schema.properties)) {
    result.properties = Object.fromEntries(
      Object.entries(schema.properties).map(([name, property]) => [name, toStructural(property as Json)]),
    )
  } else if (isSchema(schema.additionalProperties)) {
    // `properties` and `additionalProperties` exclude each other in a CRD: unknown fields are pruned instead.
    result.additionalProperties = toStructural(schema.additionalProperties)
  }
  if (isSchema(schema.items)) result.items = toStructural(schema.items)
  return result
}

const isKept = (keyword: string): boolean => KEPT.some((kept) => kept === keyword)

const isSchema = (value: unknown): value is Json => typeof value === 'object' && value !== null
