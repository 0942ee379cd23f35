import type { z } from 'zod'
import { nearest } from '../../core/index.ts'
import { innerOf } from '../../fields/index.ts'
import { shorten } from '../yaml/yaml-reader.ts'
import { YAML_LIMITS } from '../yaml/yaml-limits.ts'

/** A problem at one path of a document. */
export interface Finding {
  readonly path: readonly PropertyKey[]
  readonly message: string
  /** Whether the key itself is the problem (an unknown field), and not its value. */
  readonly at: 'key' | 'value'
}

type Issue = z.core.$ZodIssue

/**
 * Converts zod's issues into observed and expected values, with the nearest known name for a misspelled one. Only the
 * first of several issues with a value is reported: the others follow from it. Values are not quoted, except enum
 * names: a secret may have been written where a reference belongs. At most `most` findings are listed.
 */
export function explainIssues(
  issues: readonly Issue[],
  schema: z.core.$ZodType,
  value: unknown,
  most: number = YAML_LIMITS.problems,
): Finding[] {
  const findings: Finding[] = []
  const reported = new Set<string>()
  for (const issue of issues) {
    if (findings.length > most) break
    if (issue.code === 'unrecognized_keys') {
      const known = knownFields(schema, issue.path)
      for (const key of issue.keys.slice(0, most + 1)) {
        findings.push({ path: [...issue.path, key], message: unknownField(key, known), at: 'key' })
      }
      continue
    }
    const path = issue.path.map(String).join('\n')
    if (reported.has(path) && !isAboutObject(valueAt(value, issue.path))) continue
    reported.add(path)
    findings.push({ path: issue.path, message: explain(issue, valueAt(value, issue.path)), at: 'value' })
  }
  if (findings.length <= most) return findings
  return [
    ...findings.slice(0, most),
    { path: [], message: `more than ${most} problems; the rest is not listed`, at: 'value' },
  ]
}

/** A sentence about a field that is not known. */
export function unknownField(key: string, known: readonly string[]): string {
  const meant = nearest(key, known)
  if (meant !== undefined) return `unknown field "${shorten(key)}", did you mean "${meant}"?`
  const list = known.length <= 12 ? `, expected one of ${known.join(', ')}` : ''
  return `unknown field "${shorten(key)}"${known.length === 0 ? ', expected none here' : list}`
}

const isAboutObject = (value: unknown): boolean => typeof value === 'object' && value !== null

function explain(issue: Issue, value: unknown): string {
  switch (issue.code) {
    case 'invalid_type':
      // A schema with its own description (a duration, a size) is more precise than the type name.
      return typeProblem(/^expected (.*)/.exec(issue.message)?.[1] ?? kindName(issue.expected), value)
    case 'invalid_value': {
      const choices = issue.values.map(String)
      const list = `expected ${choices.length === 1 ? '' : 'one of '}${choices.join(', ')}`
      if (typeof value !== 'string') return typeProblem(list.replace(/^expected /, ''), value)
      const meant = nearest(value, choices)
      return `"${shorten(value)}" is not known, ${meant === undefined ? list : `did you mean "${meant}"?`}`
    }
    case 'too_small':
      return `too ${issue.origin === 'number' || issue.origin === 'int' ? 'small' : 'short'}, expected at least ${amount(issue.origin, Number(issue.minimum))}`
    case 'too_big':
      return `too ${issue.origin === 'number' || issue.origin === 'int' ? 'large' : 'long'}, expected at most ${amount(issue.origin, Number(issue.maximum))}`
    case 'invalid_key':
      return explainKey(issue)
    case 'invalid_format':
      return issue.format === 'datetime' ? 'expected a time such as "2026-01-31T12:00:00Z"' : issue.message
    default:
      return issue.message
  }
}

/** The key of a map is the problem, not its value. */
function explainKey({ path, issues }: Extract<Issue, { code: 'invalid_key' }>): string {
  const name = String(path.at(-1) ?? '')
  const [first] = issues
  const why = first === undefined ? 'expected another name' : explain(first, name)
  return `the name "${shorten(name)}": ${why}`
}

function amount(origin: string, bound: number): string {
  const units: Record<string, readonly [string, string]> = {
    string: ['character', 'characters'],
    array: ['entry', 'entries'],
  }
  const [one, many] = units[origin] ?? ['', '']
  return `${bound} ${bound === 1 ? one : many}`.trim()
}

function typeProblem(expected: string, value: unknown): string {
  if (value === undefined) return `missing, expected ${expected}`
  if (value === null) return `empty, expected ${expected}`
  if (expected === 'text' && (typeof value === 'number' || typeof value === 'boolean')) {
    return `expected text, found a ${typeof value === 'number' ? 'number' : 'true/false value'}; put it in quotes`
  }
  return `expected ${expected}, found ${found(value)}`
}

function found(value: unknown): string {
  if (Array.isArray(value)) return 'a list'
  switch (typeof value) {
    case 'object':
      return 'an object'
    case 'string':
      return 'text'
    case 'number':
      return Number.isInteger(value) ? 'a whole number' : 'a number with decimals'
    default:
      return 'a true/false value'
  }
}

const KINDS: Readonly<Record<string, string>> = {
  string: 'text',
  object: 'an object',
  record: 'an object',
  array: 'a list',
  boolean: 'true or false',
  int: 'a whole number',
  number: 'a number',
}

const kindName = (expected: string): string => KINDS[expected] ?? expected

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let current = value
  for (const step of path) {
    if (typeof current !== 'object' || current === null || !Object.hasOwn(current, step)) return undefined
    current = (current as Record<PropertyKey, unknown>)[step]
  }
  return current
}

/** Names of the fields allowed in an object at `path`. */
function knownFields(schema: z.core.$ZodType, path: readonly PropertyKey[]): string[] {
  let current: z.core.$ZodType | undefined = unwrap(schema)
  for (const step of path) current = current === undefined ? undefined : unwrap(child(current, step))
  const definition = (current as z.core.$ZodTypes | undefined)?._zod.def
  return definition?.type === 'object' ? Object.keys(definition.shape) : []
}

function child(schema: z.core.$ZodType, step: PropertyKey): z.core.$ZodType | undefined {
  const definition = (schema as z.core.$ZodTypes)._zod.def
  if (definition.type === 'object') return definition.shape[String(step)]
  if (definition.type === 'array') return definition.element
  return definition.type === 'record' ? definition.valueType : undefined
}

function unwrap(schema: z.core.$ZodType | undefined): z.core.$ZodType | undefined {
  if (schema === undefined) return undefined
  const definition = (schema as z.core.$ZodTypes)._zod.def
  switch (definition.type) {
    case 'optional':
    case 'default':
    case 'prefault':
      return unwrap(definition.innerType)
    case 'pipe':
      return unwrap(definition.in)
    case 'lazy':
      return unwrap(innerOf(schema))
    default:
      return schema
  }
}
