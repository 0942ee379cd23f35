import {
  compileRequestMatcher,
  compileText,
  MatcherError,
  type MatcherRemark,
  remarksOnMatcher,
  type TextExpression,
} from '../../cel/index.ts'
import type { Claims } from '../../core/index.ts'

interface Verdict {
  readonly problem: string | undefined
  /** Result of an expression without claims. */
  readonly constant?: string
  readonly remarks: readonly string[]
}

/** Maximum number of `roleMappings`: each entry costs every new caller. */
export const MOST_MAPPINGS = 500
/** Session tags of one session (AWS STS). */
export const MOST_TAGS = 50
/** Cached verdicts on matchers, newest last: an operator validates the same config at each of its changes. */
const known = new Map<string, Verdict>()
/** Total characters of the cached expressions. */
let kept = 0
/** More than the largest object in an API server. */
const MOST_KEPT = 4 * 1024 * 1024
/** Milliseconds of work before yielding to the event loop. */
const SLICE_MS = 10

/** Why a matcher can't be evaluated, with its location in the text (decisions §3.5); undefined for a valid one. */
export const matcherProblem = (text: string): string | undefined => verdictOn(text).problem

/** Warnings about a valid matcher that is probably a mistake, with locations in its text. */
export const matcherRemarks = (text: string): readonly string[] => verdictOn(text).remarks

/**
 * Why an expression that returns a string is invalid; undefined for a valid one. A constant result must match `form`,
 * which STS accepts.
 */
export function textProblem(text: string, form?: RegExp): string | undefined {
  const { problem, constant } = verdictOn(text, TEXT)
  const isRefused = form !== undefined && constant !== undefined && !form.test(constant)
  return isRefused ? 'this text has characters or a length that STS does not take' : problem
}

/** Whether an expression without claims returns this string. */
export const isConstantText = (expression: string, text: string): boolean =>
  verdictOn(expression, TEXT).constant === text

const TEXT = 'text:'

function verdictOn(expression: string, kind: '' | typeof TEXT = ''): Verdict {
  const text = kind + expression
  const isKnown = known.has(text)
  const verdict = known.get(text) ?? validate(expression, kind)
  known.delete(text)
  known.set(text, verdict)
  if (!isKnown) kept += text.length
  for (const [oldest] of known) {
    if (kept <= MOST_KEPT) break
    known.delete(oldest)
    kept -= oldest.length
  }
  return verdict
}

function validate(text: string, kind: '' | typeof TEXT): Verdict {
  try {
    if (kind === TEXT) {
      return { problem: undefined, remarks: [], ...constantOf(text, compileText(text)) }
    }
    compileRequestMatcher(text)
    return { problem: undefined, remarks: remarksOnMatcher(text).map(placed) }
  } catch (error) {
    if (!(error instanceof MatcherError)) throw error
    return { problem: placed({ position: error, message: error.message }), remarks: [] }
  }
}

const placed = ({ position: { line, column }, message }: MatcherRemark): string =>
  `line ${line}, column ${column} of the expression: ${message}`

function constantOf(text: string, expression: TextExpression): Pick<Verdict, 'constant'> {
  if (/\bclaims\b/.test(text)) return {}
  const result = expression.evaluate(Object.create(null) as Claims)
  return result.outcome === 'text' ? { constant: result.text } : {}
}

/** Limits of a validation. */
export interface TimeLimit {
  /** Aborted when the caller no longer waits. */
  readonly signal?: AbortSignal | undefined
  /** Milliseconds of work, excluding the time yielded to the event loop. */
  readonly mostMs: number
}

/** Result of a validation: complete, or why it was aborted. */
export type MatcherValidation = 'done' | 'too_long' | 'gone'

/**
 * Validates the matchers of an MCPExternalAuthConfig in slices of a few milliseconds, so that hundreds of matchers
 * don't block the event loop. Parsing the object afterwards uses the cached verdicts.
 */
export async function validateMatchers(object: unknown, { signal, mostMs }: TimeLimit): Promise<MatcherValidation> {
  let startedMs = performance.now()
  let workedMs = 0
  for (const judgeOne of expressionsOf(object)) {
    if (workedMs + (performance.now() - startedMs) > mostMs) return 'too_long'
    judgeOne()
    if (performance.now() - startedMs < SLICE_MS) continue
    workedMs += performance.now() - startedMs
    await new Promise((resolve) => setImmediate(resolve))
    if (signal?.aborted === true) return 'gone'
    startedMs = performance.now()
  }
  return 'done'
}

/** Yields a compilation for each matcher, session tag and source identity. */
function* expressionsOf(object: unknown): Generator<() => void> {
  const spec = member(object, 'spec')
  for (const type of ['cloudSts', 'awsSts']) {
    const config = member(spec, type)
    const mappings = member(config, 'roleMappings')
    yield* textsOf(config)
    // A longer list is rejected without compiling its matchers.
    if (!Array.isArray(mappings) || mappings.length > MOST_MAPPINGS) continue
    for (const mapping of mappings) {
      const matcher = member(mapping, 'matcher')
      if (typeof matcher === 'string') yield () => matcherProblem(matcher)
      yield* textsOf(mapping)
    }
  }
}

function* textsOf(holder: unknown): Generator<() => void> {
  const tags = member(holder, 'sessionTags')
  const values = Array.isArray(tags) && tags.length <= MOST_TAGS ? tags.map((tag) => member(tag, 'value')) : []
  for (const text of [...values, member(holder, 'sourceIdentity')])
    if (typeof text === 'string') yield () => textProblem(text)
}

const member = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined
