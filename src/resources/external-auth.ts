import { z } from 'zod'
import { WRITTEN_TYPES, type ExternalAuthSpec } from './auth-types.ts'
import { referredConfig, type ReferredConfig } from './referred-config.ts'
import { later, goesWithType, withRules } from '../fields/index.ts'

const NAMES = WRITTEN_TYPES.map(({ name }) => name)

/** `spec` with a sub-object for each name of a type in files. */
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

/** Drops the alias. The rules ensure that exactly the named sub-object is present. */
function normalise(parsed: { readonly [name: string]: unknown }): ExternalAuthSpec {
  const written = WRITTEN_TYPES.find(({ name }) => name === parsed['type'])
  if (written === undefined) throw new TypeError('a type that the schema does not know')
  const { name, type, schema } = written
  return (schema === undefined ? { type } : { type, [type]: parsed[name] }) as ExternalAuthSpec
}

/** The resource MCPExternalAuthConfig (specification B). */
export const externalAuthConfig = () => referredConfig('MCPExternalAuthConfig', spec().transform(normalise))

export interface MCPExternalAuthConfig extends ReferredConfig<'MCPExternalAuthConfig', ExternalAuthSpec> {}
