import { z } from 'zod'
import { isRecord, type Rule } from '../../fields/index.ts'
import { fieldsBelow, type FieldTable } from './verdict.ts'

/** Whether a field has a non-empty value. */
const isWritten = (value: unknown): boolean => {
  if (value === undefined || value === null) return false
  if (Array.isArray(value)) return value.length > 0
  return !isRecord(value) || Object.keys(value).length > 0
}

/** The value at a dot path. */
const valueAt = (value: unknown, path: string): unknown =>
  path.split('.').reduce<unknown>((part, name) => (isRecord(part) ? part[name] : undefined), value)

/** Whether a document uses a rejected field. */
export function asksFor(spec: unknown, path: string, asks: ((value: unknown) => boolean) | undefined): boolean {
  const value = valueAt(spec, path)
  return isWritten(value) && (asks === undefined || asks(value))
}

/** Creates a rule for each rejected field, reported at the field. Neither CEL nor JSON Schema can express it. */
export const refusals = (table: FieldTable, prefix = ''): Rule[] =>
  fieldsBelow(table, prefix, 'rejected')
    .filter(([path, { isOverridable }]) => isOverridable !== true && !path.includes('[]'))
    .map(([path, { details, asks }]) => ({
      message: details,
      at: path.split('.')[0] ?? path,
      holds: (spec) => !asksFor(spec, path, asks),
    }))

/**
 * Schemas for the fields that a table lists and the schema lacks, so that they can be reported. If the table lists only
 * parts of a field, the field itself is included.
 */
export function tabledFields(table: FieldTable, prefix: string, known: readonly string[]): object {
  const rows = (['rejected', 'ignored'] as const).flatMap((verdict) =>
    fieldsBelow(table, prefix, verdict).map(([path, { details }]) => {
      const [name = path, ...part] = path.split('.')
      return { name, part: part.join('.'), text: `${verdict === 'rejected' ? 'Refused' : 'Not read'}: ${details}.` }
    }),
  )
  const names = new Set(rows.map(({ name }) => name).filter((name) => !known.includes(name) && !name.includes('[]')))
  const describe = (name: string): string => {
    const own = rows.filter((row) => row.name === name)
    const whole = own.find(({ part }) => part === '')
    return whole?.text ?? own.map(({ part, text }) => `\`${part}\`: ${text}`).join(' ')
  }
  return Object.fromEntries([...names].map((name) => [name, z.unknown().optional().describe(describe(name))]))
}
