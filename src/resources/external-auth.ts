import { z } from 'zod'
import { WRITTEN_TYPES, type ExternalAuthSpec } from './auth-types.ts'
import { externalAuthStatus, type ExternalAuthStatus } from './external-auth-status.ts'
import { later, metadata, type Metadata, goesWithType, withRules } from '../fields/index.ts'

const NAMES = WRITTEN_TYPES.map(({ name }) => name)

/** `spec` with one sub-object for each name that a type has in files. */
function spec() {
  const subObjects = WRITTEN_TYPES.flatMap(({ name, schema, summary }) =>
    schema === undefined ? [] : [[name, later(schema).optional().describe(summary)] as const],
  )
  return withRules(
    z.strictObject({
      type: z.enum(NAMES).describe('How the workload authenticates to the external service.'),
      ...Object.fromEntries(subObjects),
    }),
    subObjects.map(([name]) => goesWithType(name, name, NAMES)),
  )
}

/** The rules have made sure that exactly the named sub-object is there; what is left is to drop the alias. */
function normalise(parsed: { readonly [name: string]: unknown }): ExternalAuthSpec {
  const written = WRITTEN_TYPES.find(({ name }) => name === parsed['type'])
  if (written === undefined) throw new TypeError('a type that the schema does not know')
  const { name, type, schema } = written
  return (schema === undefined ? { type } : { type, [type]: parsed[name] }) as ExternalAuthSpec
}

/** The resource MCPExternalAuthConfig (specification B). */
export const externalAuthConfig = () =>
  z.strictObject({
    apiVersion: z.string(),
    kind: z.literal('MCPExternalAuthConfig'),
    metadata: metadata(),
    spec: spec().transform(normalise),
    status: later(externalAuthStatus).optional(),
  })

export interface MCPExternalAuthConfig {
  readonly apiVersion: string
  readonly kind: 'MCPExternalAuthConfig'
  readonly metadata: Metadata
  readonly spec: ExternalAuthSpec
  readonly status?: ExternalAuthStatus | undefined
}
