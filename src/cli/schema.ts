import { stringify } from 'yaml'
import {
  combinedSchema,
  CRD_KINDS,
  type CrdKind,
  customResourceDefinition,
  jsonSchema,
  JSON_SCHEMA_NAMES,
  type JsonSchemaName,
} from '../load/publish/index.ts'
import { DEFAULT_API_GROUP, WRITTEN_YAML } from '../load/index.ts'
import { EXIT, UsageError } from '../compose/index.ts'
import { command } from './command.ts'
import { API_GROUP } from './options/option-values.ts'
import type { CommandSpec } from './options/options.ts'

export const SCHEMA_SPEC: CommandSpec = {
  name: 'extauth schema',
  summary: 'Prints JSON Schemas and CustomResourceDefinitions.',
  positionals: '[NAME | --combined | --all | --crd [KIND]]',
  completes: JSON_SCHEMA_NAMES,
  options: {
    combined: { type: 'boolean', help: 'Prints one JSON Schema for all kinds, for editors.' },
    all: { type: 'boolean', help: 'Prints all JSON Schemas as one object.' },
    crd: {
      type: 'boolean',
      help: 'Prints the CustomResourceDefinition of KIND as YAML. Default MCPExternalAuthConfig.',
    },
    'api-group': {
      type: 'string',
      is: API_GROUP,
      value: 'GROUP',
      help: `API group of the definition. Default ${DEFAULT_API_GROUP}.`,
    },
  },
  notes: [
    `NAME is one of ${JSON_SCHEMA_NAMES.join(', ')}; without it, the names are printed.`,
    '',
    'Exit codes: 0 printed, 2 usage.',
  ].join('\n'),
}

export const runSchema = command(SCHEMA_SPEC, ({ options, io }) => {
  const [name, ...more] = options.positionals
  const isCrd = options.flag('crd')
  const wanted = [name !== undefined && !isCrd, options.flag('all'), options.flag('combined'), isCrd].filter(
    Boolean,
  ).length
  if (wanted > 1 || more.length > 0) throw new UsageError('expected one of NAME, --combined, --all and --crd [KIND]')
  if (isCrd) io.stdout(renderCrd(options.text('api-group'), name === undefined ? undefined : crdKind(name)))
  else if (options.flag('combined')) io.stdout(renderJson(combinedSchema()))
  else if (options.flag('all'))
    io.stdout(renderJson(Object.fromEntries(JSON_SCHEMA_NAMES.map((each) => [each, jsonSchema(each)]))))
  else if (name === undefined) io.stdout(`${JSON_SCHEMA_NAMES.join('\n')}\n`)
  else io.stdout(renderJson(jsonSchema(schemaName(name))))
  return EXIT.fine
})

function schemaName(name: string): JsonSchemaName {
  const known = JSON_SCHEMA_NAMES.find((each) => each.toLowerCase() === name.toLowerCase())
  if (known === undefined)
    throw new UsageError(`unknown schema ${JSON.stringify(name)}; expected one of ${JSON_SCHEMA_NAMES.join(', ')}`)
  return known
}

function crdKind(name: string): CrdKind {
  const known = CRD_KINDS.find((each) => each.toLowerCase() === name.toLowerCase())
  if (known === undefined)
    throw new UsageError(
      `no CustomResourceDefinition of kind ${JSON.stringify(name)}; expected one of ${CRD_KINDS.join(', ')}`,
    )
  return known
}

/** Renders a JSON Schema as printed and committed. */
export const renderJson = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`

/**
 * Renders a CustomResourceDefinition as printed and committed. Throws `UsageError` for a group that is not a DNS name.
 */
export function renderCrd(apiGroup: string = DEFAULT_API_GROUP, kind: CrdKind = 'MCPExternalAuthConfig'): string {
  if (!API_GROUP.accepts(apiGroup)) throw new UsageError(`--api-group must be ${API_GROUP.expected}`)
  return stringify(customResourceDefinition(apiGroup, kind), WRITTEN_YAML)
}
