import { Ajv2020 } from 'ajv/dist/2020.js'
import { customResourceDefinition, jsonSchema, type JsonSchemaName } from '../../../../src/load/publish/index.ts'
import { parseDocuments } from '../../../../src/load/index.ts'

type Json = { [name: string]: unknown }

/** A document with our header around a spec. */
export const document = (spec: unknown, kind = 'MCPExternalAuthConfig'): Json => ({
  apiVersion: 'extauth.dev/v1alpha1',
  kind,
  metadata: { name: 'example' },
  spec,
})

/** The problems of `validate` as `path  message`. */
export function problemsOf(...values: readonly unknown[]): string[] {
  const files = values.map((value, index) => ({ path: `${index}.json`, text: JSON.stringify(value) }))
  return parseDocuments(files).problems.map((problem) => `${problem.path}  ${problem.message}`)
}

/** Compiles JSON Schemas. Optimizing the code takes longer than running it a few times. */
export const createAjv = () => new Ajv2020({ strict: false, validateFormats: false, code: { optimize: false } })

const ajv = createAjv()
const validators = new Map<string, ReturnType<typeof ajv.compile>>()

/** The verdict of an editor with the JSON Schema. */
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
