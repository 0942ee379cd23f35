import type { z } from 'zod'
import { innerOf } from './later.ts'
import { isRecord } from './rules.ts'

/**
 * A copy without what is `null`: fields that the schema knows and entries of maps, which are absent in a cluster, too
 * (decisions §1). Items of lists stay, and so do fields that the schema does not know: they are unknown whatever they hold.
 */
export function withoutNulls(schema: z.core.$ZodType, value: unknown): unknown {
  const definition = (schema as z.core.$ZodTypes)._zod.def
  switch (definition.type) {
    case 'object':
      return filled(value, (name) => (Object.hasOwn(definition.shape, name) ? definition.shape[name] : undefined))
    case 'record':
      return filled(value, () => definition.valueType)
    case 'array':
      return Array.isArray(value) ? value.map((item) => withoutNulls(definition.element, item)) : value
    case 'optional':
    case 'default':
    case 'prefault':
    case 'nullable':
      return withoutNulls(definition.innerType, value)
    case 'lazy':
      return isRecord(value) || Array.isArray(value) ? withoutNulls(innerOf(schema), value) : value
    case 'pipe':
      return withoutNulls(definition.in, value)
    default:
      return value
  }
}

function filled(value: unknown, schemaOf: (name: string) => z.core.$ZodType | undefined): unknown {
  if (!isRecord(value)) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, member]) => {
      const schema = schemaOf(name)
      if (schema === undefined) return [[name, member]]
      return member === null ? [] : [[name, withoutNulls(schema, member)]]
    }),
  )
}
