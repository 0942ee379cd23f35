import { once } from '../../fields/index.ts'
import { DEFAULT_API_GROUP, DOCUMENT_KINDS } from '../documents/document-kinds.ts'
import { jsonSchema, JSON_SCHEMA_NAMES, type Json, type JsonSchemaName } from './json-schema.ts'

const ref = (name: string): Json => ({ $ref: `#/$defs/${name}` })
const isKind = (kind: string): Json => ({ properties: { kind: { const: kind } }, required: ['kind'] })
const has = (name: string): Json => ({ required: [name] })
const lacks = (name: string): Json => ({ not: has(name) })

/** All parts that match a document apply, so an editor reports problems for the intended kind. */
const CASES: readonly { readonly when: Json; readonly schema: Json }[] = [
  ...DOCUMENT_KINDS.map((kind) => ({ when: isKind(kind), schema: ref(kind) })),
  ...['List', ...DOCUMENT_KINDS.map((kind) => `${kind}List`)].map((kind) => ({
    when: isKind(kind),
    schema: { properties: { items: { type: 'array', items: { $ref: '#' } } } },
  })),
  {
    when: {
      properties: { apiVersion: { pattern: `^${DEFAULT_API_GROUP.replaceAll('.', '[.]')}/` } },
      ...has('apiVersion'),
    },
    schema: { properties: { kind: { enum: DOCUMENT_KINDS.flatMap((kind) => [kind, `${kind}List`]) } }, ...has('kind') },
  },
  // A document without both is the registry file or a separate `auth` section.
  {
    when: { allOf: [lacks('apiVersion'), lacks('kind'), { anyOf: [has('registries'), both('auth')] }] },
    schema: ref('RegistryConfig'),
  },
  {
    when: { allOf: [lacks('apiVersion'), lacks('kind'), has('auth'), { maxProperties: 1 }] },
    schema: { properties: { auth: ref('AuthSection') } },
  },
]

/** Requires both the property and others. */
function both(name: string): Json {
  return { ...has(name), minProperties: 2 }
}

/**
 * One JSON Schema (draft 2020-12) for every file that mcp-extauth reads: selected by `kind`, or by content without
 * one. Unsupported documents pass.
 */
export const combinedSchema: () => Json = once(() => {
  const $defs = Object.fromEntries(JSON_SCHEMA_NAMES.map((name: JsonSchemaName) => [name, withoutDialect(name)]))
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Files of mcp-extauth',
    type: 'object',
    allOf: CASES.map(({ when, schema }) => Object.fromEntries(new Map([['if', when]]).set('then', schema))),
    $defs,
  }
})

function withoutDialect(name: JsonSchemaName): Json {
  const { $schema: _dialect, ...schema } = jsonSchema(name)
  return schema
}
