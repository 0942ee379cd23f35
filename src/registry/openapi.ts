import { z } from 'zod'
import { type DescribedAnswer, failureResponses, metadataAnswer } from './api-schema.ts'
import { ENDPOINTS, type Endpoint } from './endpoints.ts'
import { apiSchemas } from './server-json.ts'

const REF = '#/components/schemas/'

const options = {
  target: 'draft-2020-12',
  // Bodies are documented as sent. Parameters arrive as strings: `io: 'input'` would describe the preprocessing.
  io: 'output',
  unrepresentable: 'any',
} as const

interface JsonSchema {
  readonly properties?: Readonly<Record<string, { readonly description?: string }>>
  readonly required?: readonly string[]
}

/** The parameters of an object schema, with their descriptions. */
function parameters(schema: z.ZodObject, where: 'query' | 'path'): object[] {
  const { properties = {} } = z.toJSONSchema(schema, options) as JsonSchema
  return Object.entries(properties).map(([name, { description, ...schema }]) => {
    const parameter = { in: where, name, required: where === 'path', schema }
    return description === undefined ? parameter : Object.assign(parameter, { description })
  })
}

const response = ({ description, schema }: DescribedAnswer): object => ({
  description,
  content: { 'application/json': { schema: reference(schema) } },
})

/** A reference to a schema with an ID, else the schema itself. */
function reference(schema: z.ZodType): object {
  const id = apiSchemas.get(schema)?.id
  return id === undefined ? withoutMarks(z.toJSONSchema(schema, options)) : { $ref: `${REF}${id}` }
}

/** A schema as a part of the document, without `$schema` and `$id`. */
function withoutMarks(schema: object): object {
  return Object.fromEntries(Object.entries(schema).filter(([name]) => name !== '$schema' && name !== '$id'))
}

function operation({ summary, params, query, answer }: Endpoint, isProtected: boolean): object {
  const failures = Object.entries(failureResponses(isProtected))
  return {
    summary,
    tags: ['servers'],
    parameters: [...parameters(query, 'query'), ...parameters(params, 'path')],
    ...(isProtected ? { security: [{ bearer: [] }] } : {}),
    responses: Object.fromEntries([['200', response(answer)], ...failures.map(([code, of]) => [code, response(of)])]),
  }
}

function components(isProtected: boolean): object {
  const { schemas } = z.toJSONSchema(apiSchemas, { ...options, uri: (id) => `${REF}${id}` })
  return {
    ...(isProtected ? { securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } } : {}),
    schemas: Object.fromEntries(Object.entries(schemas).map(([id, schema]) => [id, withoutMarks(schema)])),
  }
}

/** The OpenAPI 3.1 document of the registry API as JSON. `version` is this program's. */
export function openApiDocument(version: string, isProtected: boolean): string {
  const api = ENDPOINTS.map((endpoint) => [
    `/registry/{name}/v0.1/servers${endpoint.path}`.replaceAll(/:(\w+)/g, '{$1}'),
    { get: operation(endpoint, isProtected) },
  ])
  const discovery = {
    summary: 'OAuth discovery: which authorization servers issue tokens for this registry.',
    tags: ['discovery'],
    responses: { 200: response(metadataAnswer) },
  }
  return JSON.stringify({
    openapi: '3.1.0',
    info: {
      title: 'MCP registry',
      description: 'Lists MCP servers, as the published MCP registry API v0.1 does.',
      version,
    },
    components: components(isProtected),
    paths: { ...Object.fromEntries(api), '/.well-known/oauth-protected-resource': { get: discovery } },
  })
}
