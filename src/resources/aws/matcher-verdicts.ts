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
  /** What an expression gives that asks for no claim. */
  readonly constant?: string
  readonly remarks: readonly string[]
}

/** Entries of `roleMappings`: more are no longer read by anybody, and each costs every new caller. */
export const MOST_MAPPINGS = 500
/** Session tags of one session (AWS STS). */
export const MOST_TAGS = 50
/** What was found of matchers, the latest last: an operator reads the same config at each of its changes. */
const known = new Map<string, Verdict>()
/** Characters of all texts in it. */
let kept = 0
/** More than the largest object that an API server stores. */
const MOST_KEPT = 4 * 1024 * 1024
/** Milliseconds after which others have their turn. */
const SLICE_MS = 10

/** Why a matcher can never be evaluated, with the place in its text (decisions §3.5); undefined for one that can. */
export const matcherProblem = (text: string): string | undefined => verdictOn(text).problem

/** What a matcher that can be evaluated hardly means, with the places in its text. */
export const matcherRemarks = (text: string): readonly string[] => verdictOn(text).remarks

/** The same of an expression that gives a text; of one that asks for no claim, also that STS would not take what it gives. */
export function textProblem(text: string, form?: RegExp): string | undefined {
  const { problem, constant } = verdictOn(text, TEXT)
  const isRefused = form !== undefined && constant !== undefined && !form.test(constant)
  return isRefused ? 'this text has characters or a length that STS does not take' : problem
}

/** Whether an expression that asks for no claim gives this text. */
export const isConstantText = (expression: string, text: string): boolean =>
  verdictOn(expression, TEXT).constant === text

const TEXT = 'text:'

function verdictOn(expression: string, kind: '' | typeof TEXT = ''): Verdict {
  const text = kind + expression
  const isKnown = known.has(text)
  const verdict = known.get(text) ?? judge(expression, kind)
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

function judge(text: string, kind: '' | typeof TEXT): Verdict {
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

/** How long somebody waits for a judgement. */
export interface TimeLimit {
  /** Aborted when nobody waits any more. */
  readonly signal?: AbortSignal | undefined
  /** Milliseconds of work, others' turns between not counted. */
  readonly mostMs: number
}

/** Whether every matcher was looked at, and why not. */
export type MatcherValidation = 'done' | 'too_long' | 'gone'

/**
 * Judges the matchers of an MCPExternalAuthConfig a few milliseconds at a time, so that one with hundreds of them holds
 * nobody up; whoever parses the object afterwards finds them judged. Only after `judged` that costs next to nothing.
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

/** What compiles each matcher, and each expression of session tags and source identities. */
function* expressionsOf(object: unknown): Generator<() => void> {
  const spec = member(object, 'spec')
  for (const type of ['cloudSts', 'awsSts']) {
    const config = member(spec, type)
    const mappings = member(config, 'roleMappings')
    yield* textsOf(config)
    // A longer list is refused without a look at them.
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
