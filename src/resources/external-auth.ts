import { z } from 'zod'
import { WRITTEN_TYPES, type ExternalAuthSpec } from './auth-types.ts'
import { referredConfig, type ReferredConfig } from './referred-config.ts'
import { later, goesWithType, withRules } from '../fields/index.ts'

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
export const externalAuthConfig = () => referredConfig('MCPExternalAuthConfig', spec().transform(normalise))

export interface MCPExternalAuthConfig extends ReferredConfig<'MCPExternalAuthConfig', ExternalAuthSpec> {}
