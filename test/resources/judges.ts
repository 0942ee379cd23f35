import { celEnv, parse, plan, type CelInput } from '@bufbuild/cel'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { customResourceDefinition, jsonSchema, parseDocuments, type JsonSchemaName } from '../../src/resources/index.ts'

type Json = { [name: string]: unknown }

/** A document with our header around a spec. */
export const document = (spec: unknown, kind = 'MCPExternalAuthConfig'): Json => ({
  apiVersion: 'extauth.dev/v1alpha1',
  kind,
  metadata: { name: 'example' },
  spec,
})

/** What `validate` says: `path  message` of each problem. */
export function problemsOf(...values: readonly unknown[]): string[] {
  const files = values.map((value, index) => ({ path: `${index}.json`, text: JSON.stringify(value) }))
  return parseDocuments(files).problems.map((problem) => `${problem.path}  ${problem.message}`)
}

const ajv = new Ajv2020({ strict: false, validateFormats: false })
const validators = new Map<string, ReturnType<typeof ajv.compile>>()

/** What an editor with our JSON Schema says. */
export function jsonSchemaAccepts(name: JsonSchemaName, value: unknown): boolean {
  let validate = validators.get(name)
  if (validate === undefined) {
    validate = ajv.compile(jsonSchema(name))
    validators.set(name, validate)
  }
  return validate(value) === true
}

/** `spec` of the schema that an API server would check a MCPExternalAuthConfig by. */
export function crdSchema(): Json {
  const definition = customResourceDefinition() as {
    spec: { versions: [{ schema: { openAPIV3Schema: Json } }] }
  }
  return definition.spec.versions[0].schema.openAPIV3Schema
}

const crd = ajv.compile(crdSchema())
const env = celEnv()
const plans = new Map<string, ReturnType<typeof plan>>()

function planned(rule: string): ReturnType<typeof plan> {
  const known = plans.get(rule) ?? plan(env, parse(rule))
  plans.set(rule, known)
  return known
}

/** What an API server says: the structural schema, then the rules at every level, as the defaults would stand. */
export function crdAccepts(value: Json): boolean {
  return crd(value) && brokenRules(crdSchema(), value).length === 0
}

/** Messages of the `x-kubernetes-validations` that a value breaks. */
export function brokenRules(schema: Json, value: unknown): string[] {
  const broken: string[] = []
  for (const { rule, message } of (schema['x-kubernetes-validations'] ?? []) as { rule: string; message: string }[]) {
    if (planned(rule)({ self: value as CelInput }) !== true) broken.push(message)
  }
  const { properties, items, additionalProperties } = schema as { [keyword: string]: Json | undefined }
  if (Array.isArray(value)) return [...broken, ...value.flatMap((item) => (items ? brokenRules(items, item) : []))]
  if (typeof value !== 'object' || value === null) return broken
  for (const [name, member] of Object.entries(value)) {
    const part = (properties?.[name] ?? additionalProperties) as Json | undefined
    if (part !== undefined) broken.push(...brokenRules(part, member))
  }
  return broken
}
