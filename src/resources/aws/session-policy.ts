import { isRecord } from '../../fields/index.ts'

/** Characters of a session policy (AWS STS, `Policy`). */
export const LONGEST_POLICY = 2048
const PLACEHOLDER = /\{claims\.([^{}]{1,256})\}/g
/** Where no claim may have a say: what is allowed, and whether. */
const FIXED: ReadonlySet<string> = new Set(['action', 'notaction', 'effect'])

type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json }

/** Why a session policy of a mapping is none; undefined for one that is. */
export function policyProblem({ document, template }: Readonly<Record<string, unknown>>): string | undefined {
  if (isRecord(document)) {
    if (!('Statement' in document)) return 'expected a policy: an object with "Statement"'
    const { length } = JSON.stringify(document)
    return length > LONGEST_POLICY
      ? `a session policy has at most ${LONGEST_POLICY} characters, this has ${length}`
      : undefined
  }
  if (typeof template !== 'string') return undefined
  const parsed = parsedTemplate(template)
  if (!isRecord(parsed) || !('Statement' in parsed))
    return 'expected a policy as JSON, with placeholders in texts only: an object with "Statement"'
  const shortest = fillPolicy(parsed, () => 'x').length
  if (shortest > LONGEST_POLICY)
    return `a session policy has at most ${LONGEST_POLICY} characters, this would have ${shortest} or more`
  return misplaced(parsed, false)
}

/** A template as JSON; undefined for what is none. */
export function parsedTemplate(template: string): Json | undefined {
  try {
    return JSON.parse(template) as Json
  } catch {
    return undefined
  }
}

function misplaced(value: unknown, isFixed: boolean): string | undefined {
  if (typeof value === 'string')
    return isFixed && hasPlaceholder(value) ? 'no placeholder may stand in Action, NotAction or Effect' : undefined
  if (Array.isArray(value)) return value.map((each) => misplaced(each, isFixed)).find((each) => each !== undefined)
  if (!isRecord(value)) return undefined
  for (const [name, each] of Object.entries(value)) {
    if (hasPlaceholder(name)) return 'no placeholder may stand in a name'
    const problem = misplaced(each, isFixed || FIXED.has(name.toLowerCase()))
    if (problem !== undefined) return problem
  }
  return undefined
}

const hasPlaceholder = (text: string): boolean => text.search(PLACEHOLDER) >= 0

/** The policy as it is sent, with `value` for each placeholder; what it gives is escaped, as all texts of JSON are. */
export function fillPolicy(parsed: Json, value: (claim: string) => string): string {
  const fill = (part: Json): Json => {
    if (typeof part === 'string') return part.replace(PLACEHOLDER, (_all, claim: string) => value(claim))
    if (part === null || typeof part !== 'object') return part
    if (isList(part)) return part.map(fill)
    return Object.fromEntries(Object.entries(part).map(([name, each]) => [name, fill(each)]))
  }
  return JSON.stringify(fill(parsed))
}

const isList = (part: Json): part is readonly Json[] => Array.isArray(part)
