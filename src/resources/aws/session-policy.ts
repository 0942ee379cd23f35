import { isRecord } from '../../fields/index.ts'
import { PLACEHOLDER } from './role-arn.ts'

/** Maximum characters of a session policy (AWS STS, `Policy`). */
export const LONGEST_POLICY = 2048
const EVERY_PLACEHOLDER = new RegExp(PLACEHOLDER, 'g')
/** A policy variable of IAM (IAM User Guide, policy variables). */
const VARIABLE = /\$\{[^{}]{0,256}\}/g
/** A probable typo of a placeholder in a text without any. */
const MEANT = /\{\s{0,9}claims?\b[^{}]{0,256}\}/i
/** Statement elements that may contain placeholders: resource and condition, not effect, action or principal. */
const FREE: ReadonlySet<string> = new Set(['resource', 'condition'])

type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json }

/** Why a session policy of a mapping is invalid; undefined for a valid one. */
export function policyProblem({ document, template }: Readonly<Record<string, unknown>>): string | undefined {
  if (isRecord(document)) return constantProblem(document)
  return typeof template === 'string' ? templateProblem(template) : undefined
}

/** Why a policy without placeholders, as JSON or parsed, is invalid; undefined for a valid one. */
export function constantProblem(policy: unknown): string | undefined {
  const parsed = typeof policy === 'string' ? parsedTemplate(policy) : policy
  if (!isRecord(parsed) || !('Statement' in parsed)) return 'expected a policy as JSON: an object with "Statement"'
  const text = JSON.stringify(parsed)
  const meant = MEANT.exec(text)?.[0]
  if (meant !== undefined)
    return `${quoted(meant)} is not replaced here; expected a template (sessionPolicyTemplate, or sessionPolicy.template of a mapping)`
  return lengthProblem(typeof policy === 'string' ? asciiJson(policy).length : asciiJson(text).length, 'has')
}

/** Why a policy with placeholders is invalid; undefined for a valid one. */
export function templateProblem(template: string): string | undefined {
  const parsed = parsedTemplate(template)
  if (!isRecord(parsed) || !('Statement' in parsed))
    return 'expected a policy as JSON, with placeholders in strings only: an object with "Statement"'
  return misplaced(parsed, [], false) ?? lengthProblem(fillPolicy(parsed, () => 'x').length, 'would have at least')
}

const lengthProblem = (length: number, has: string): string | undefined =>
  length > LONGEST_POLICY
    ? `a session policy has at most ${LONGEST_POLICY} characters, this ${has} ${length}`
    : undefined

/** The template as JSON; undefined if it isn't JSON. */
export function parsedTemplate(template: string): Json | undefined {
  try {
    return JSON.parse(template) as Json
  } catch {
    return undefined
  }
}

/** Why a placeholder is invalid or misplaced; `at`: the property names that lead to `value`. */
function misplaced(value: unknown, at: readonly string[], isFree: boolean): string | undefined {
  if (typeof value === 'string') {
    const unknown = unknownPlaceholder(value)
    if (unknown !== undefined)
      return `${quoted(unknown)} is not understood; expected {claims.PATH}, or a policy variable such as \${aws:userid}`
    return isFree || !hasPlaceholder(value)
      ? undefined
      : `no placeholder may be in ${at.join('.')}; expected it in Resource or Condition of a statement`
  }
  if (Array.isArray(value))
    return value.map((each) => misplaced(each, at, isFree)).find((problem) => problem !== undefined)
  if (!isRecord(value)) return undefined
  for (const [name, each] of Object.entries(value)) {
    if (hasPlaceholder(name) || MEANT.test(name)) return `no placeholder may be in a name, as in ${quoted(name)}`
    const isElement = at.length === 1 && at[0]?.toLowerCase() === 'statement'
    const problem = misplaced(each, [...at, name], isFree || (isElement && FREE.has(name.toLowerCase())))
    if (problem !== undefined) return problem
  }
  return undefined
}

/** The first text in braces that is neither a placeholder nor a policy variable. */
function unknownPlaceholder(text: string): string | undefined {
  const meant = /\$\{\s{0,9}claims?\b[^{}]{0,256}\}/i.exec(text)?.[0]
  if (meant !== undefined) return meant
  const rest = text.replace(VARIABLE, blanks).replace(EVERY_PLACEHOLDER, blanks)
  const from = rest.search(/[{}]/)
  return from < 0 ? undefined : text.slice(from)
}

const blanks = (text: string): string => ' '.repeat(text.length)

/** Maximum characters of a quotation in a message. */
const SHOWN = 64
const quoted = (text: string): string => JSON.stringify(text.slice(0, SHOWN))

const hasPlaceholder = (text: string): boolean => text.search(EVERY_PLACEHOLDER) >= 0

/** JSON in the characters that STS accepts: others are escaped as `\\uXXXX`. */
export const asciiJson = (json: string): string =>
  json.replace(/[^\t\n\r\x20-\x7e]/g, (unit) => String.raw`\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** The policy as it is sent: JSON in ASCII, with `value` for each placeholder. */
export function fillPolicy(parsed: Json, value: (claim: string) => string): string {
  const fill = (part: Json): Json => {
    if (typeof part === 'string')
      return part.replace(EVERY_PLACEHOLDER, (all) => value(all.slice('{claims.'.length, -1)))
    if (part === null || typeof part !== 'object') return part
    if (isList(part)) return part.map(fill)
    return Object.fromEntries(Object.entries(part).map(([name, each]) => [name, fill(each)]))
  }
  return asciiJson(JSON.stringify(fill(parsed)))
}

const isList = (part: Json): part is readonly Json[] => Array.isArray(part)
