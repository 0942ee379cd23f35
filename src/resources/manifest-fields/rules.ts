import { z } from 'zod'
import { isRecord, type Rule } from '../../fields/index.ts'
import { fieldsBelow, type FieldTable } from './verdict.ts'

/** Whether a field is written with something in it. */
const isWritten = (value: unknown): boolean => {
  if (value === undefined || value === null) return false
  if (Array.isArray(value)) return value.length > 0
  return !isRecord(value) || Object.keys(value).length > 0
}

/** The value at a dot path. */
const valueAt = (value: unknown, path: string): unknown =>
  path.split('.').reduce<unknown>((part, name) => (isRecord(part) ? part[name] : undefined), value)

/** Whether a document asks for a field that is refused. */
export function asksFor(spec: unknown, path: string, asks: ((value: unknown) => boolean) | undefined): boolean {
  const value = valueAt(spec, path)
  return isWritten(value) && (asks === undefined || asks(value))
}

/** A rule for each refused field of an object, told at the field that it is in. Neither CEL nor JSON Schema can say it. */
export const refusals = (table: FieldTable, prefix = ''): Rule[] =>
  fieldsBelow(table, prefix, 'refused')
    .filter(([path, { hasWaysOut }]) => hasWaysOut !== true && !path.includes('[]'))
    .map(([path, { says, asks }]) => ({
      message: says,
      at: path.split('.')[0] ?? path,
      holds: (spec) => !asksFor(spec, path, asks),
    }))

/** Schemas of the fields of an object that a table has and the schema does not: they are there to be told about. */
export function tabledFields(table: FieldTable, prefix: string, known: readonly string[]): object {
  const names = (['refused', 'told'] as const).flatMap((verdict) =>
    fieldsBelow(table, prefix, verdict).map(([path, { says }]) => ({
      name: path.split('.')[0] ?? path,
      text: `${verdict === 'refused' ? 'Refused' : 'Not read'}: ${says}.`,
      isWhole: !path.includes('.'),
    })),
  )
  return Object.fromEntries(
    names
      .filter(({ name }) => !known.includes(name) && !name.includes('[]'))
      .map(({ name, text, isWhole }) => [
        name,
        z
          .unknown()
          .optional()
          .describe(isWhole ? text : 'Refused in part, or not read.'),
      ]),
  )
}
