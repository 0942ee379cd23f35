import { z } from 'zod'
import {
  authSection,
  externalAuthConfig,
  mcpOidcConfig,
  mcpTelemetryConfig,
  mcpToolConfig,
  proxyConfig,
  registryConfig,
  roleTest,
  workload,
} from '../../resources/index.ts'
import { rulesOf, UNSTRUCTURED } from '../../fields/index.ts'

const SCHEMAS = {
  MCPExternalAuthConfig: externalAuthConfig,
  MCPOIDCConfig: mcpOidcConfig,
  MCPTelemetryConfig: mcpTelemetryConfig,
  MCPToolConfig: mcpToolConfig,
  ProxyConfig: proxyConfig,
  RegistryConfig: registryConfig,
  RoleTest: roleTest,
  AuthSection: authSection,
  MCPServer: () => workload('MCPServer'),
  MCPRemoteProxy: () => workload('MCPRemoteProxy'),
  MCPServerEntry: () => workload('MCPServerEntry'),
  VirtualMCPServer: () => workload('VirtualMCPServer'),
}

export type JsonSchemaName = keyof typeof SCHEMAS
/** Names accepted by `extauth schema NAME`. */
export const JSON_SCHEMA_NAMES = Object.keys(SCHEMAS) as readonly JsonSchemaName[]

/** A JSON Schema, or a part of one. */
export type Json = { [keyword: string]: unknown }

/** JSON Schema (draft 2020-12) for files of this kind, including cross-field rules. */
export function jsonSchema(name: JsonSchemaName): Json {
  const { $schema, ...schema } = inputSchema(SCHEMAS[name](), (part, rules) => {
    const fragments = rules.flatMap((rule) => (rule.json === undefined ? [] : [rule.json]))
    if (fragments.length > 0) part.allOf = fragments
    for (const mark of Object.keys(UNSTRUCTURED)) delete part[mark]
  })
  return { $schema, title: name, ...schema }
}

/** zod's JSON Schema of the input, with each object's rules passed to `addRules`. */
export function inputSchema(
  schema: z.ZodType,
  addRules: (part: Json, rules: ReturnType<typeof rulesOf>) => void,
): Json {
  const json = z.toJSONSchema(schema, {
    io: 'input',
    target: 'draft-2020-12',
    reused: 'inline',
    override: ({ zodSchema, jsonSchema }) => {
      const part = jsonSchema as Json
      addRules(part, rulesOf(zodSchema))
      // zod limits every integer to the safe range, and every map key to strings.
      if (part.minimum === Number.MIN_SAFE_INTEGER) delete part.minimum
      if (part.maximum === Number.MAX_SAFE_INTEGER) delete part.maximum
      if (isEmptyStringSchema(part.propertyNames)) delete part.propertyNames
    },
  })
  return json
}

const isEmptyStringSchema = (schema: unknown): boolean =>
  typeof schema === 'object' && schema !== null && Object.keys(schema).join() === 'type'
