import { cel } from './library.ts'
import type { CelError, CelInput } from '@bufbuild/cel'
import { type Claims, noPrototype } from '../core/index.ts'
import { checkExpression, type Node } from './check.ts'
import { claimsToCel } from './claims.ts'
import { meteredEnvironment } from './functions.ts'
import { parseExpression, type Position, positionAt } from './parse.ts'
import { Patterns } from './patterns.ts'

/** The outcome of one evaluation, without claim values. */
export type MatcherResult =
  | { readonly outcome: 'matched' }
  | { readonly outcome: 'not_matched' }
  /** A key that is not there, a wrong type, a value that does not convert: no match, unless the config sets deny. */
  | {
      readonly outcome: 'error'
      readonly position: Position
      readonly reason: string
      readonly missingKey: string | undefined
    }
  /** The evaluation would cost too much: the caller is refused, whatever else matches (decisions §3.5). */
  | { readonly outcome: 'limit' }

/** A compiled CEL expression over `claims`. */
export interface Matcher {
  readonly expression: string
  /**
   * Evaluates; never throws, and costs at most a fixed number of steps whatever the claims are. `onRead` is called with the
   * name of each claim that the expression asks for.
   */
  evaluate(claims: Claims, onRead?: (claim: string) => void): MatcherResult
}

const Variables = noPrototype<CelInput>()

const MATCHED: MatcherResult = Object.freeze({ outcome: 'matched' })
const NOT_MATCHED: MatcherResult = Object.freeze({ outcome: 'not_matched' })
const LIMIT: Unfinished = Object.freeze({ outcome: 'limit' })

/**
 * Compiles a matcher of a role mapping (decisions §3.5): CEL with the one variable `claims`, a map without prototype whose
 * numbers are doubles. Throws `MatcherError` with line and column for what can never be evaluated to a bool.
 */
export function compileMatcher(expression: string): Matcher {
  const evaluate = compileExpression(expression, ['claims'])
  return { expression, evaluate: (claims, onRead) => evaluate({ claims: claimsToCel(claims, onRead) }) }
}

/** The outcome of an expression with a string result. */
export type TextResult =
  { readonly outcome: 'text'; readonly text: string } | Extract<MatcherResult, { outcome: 'error' | 'limit' }>

/** A compiled CEL expression over `claims` that gives a text. */
export interface TextExpression {
  /** As that of a matcher. */
  evaluate(claims: Claims): TextResult
}

/** Compiles it under the rules and limits of a matcher. Throws `MatcherError` for what can never be evaluated to a text. */
export function compileText(expression: string): TextExpression {
  const run = planned(expression, ['claims'], 'string')
  return {
    evaluate(claims) {
      const ended = run({ claims: claimsToCel(claims) })
      if (!('result' in ended)) return ended
      const { result, fail } = ended
      return typeof result === 'string' ? { outcome: 'text', text: result } : fail('the result is not a string')
    },
  }
}

/** A matcher over other variables than `claims`; what the conformance suite of CEL is run through. */
export function compileExpression(
  expression: string,
  variables: readonly string[],
): (values: Readonly<Record<string, CelInput>>) => MatcherResult {
  const run = planned(expression, variables, 'bool')
  return (values) => {
    const ended = run(values)
    if (!('result' in ended)) return ended
    const { result, fail } = ended
    if (result === true) return MATCHED
    return result === false ? NOT_MATCHED : fail('the result is not a bool')
  }
}

type Unfinished = Extract<MatcherResult, { outcome: 'error' | 'limit' }>
/** A result of whatever type, and how it is refused. */
type Ended = Unfinished | { readonly result: unknown; readonly fail: (reason: string) => Unfinished }

function planned(
  expression: string,
  variables: readonly string[],
  wanted: 'bool' | 'string',
): (values: Readonly<Record<string, CelInput>>) => Ended {
  const patterns = new Patterns()
  const { env, meter, begin } = meteredEnvironment()
  const parsed = parseExpression(expression)
  const nodes = checkExpression(expression, parsed, env, patterns, variables, wanted)
  const evaluate = cel().plan(env, parsed)
  const fail = (reason: string) => error({ text: expression, nodes }, undefined, reason)
  return (values) => {
    begin(patterns)
    // Without inherited names, because variables are looked up by plain property access.
    const result = evaluate(Object.assign(new Variables(), values))
    // First of all: `||` and `&&` absorb the error of a reached limit.
    if (meter.exceeded) return LIMIT
    return cel().isCelError(result) ? failed(result, { text: expression, nodes }) : { result, fail }
  }
}

interface Checked {
  readonly text: string
  readonly nodes: ReadonlyMap<number, Node>
}

function failed(cause: CelError, checked: Checked): Unfinished {
  const node = cause.exprId === undefined ? undefined : checked.nodes.get(Number(cause.exprId))
  const isMissing = /^(?:field not found|no such key|index out of bounds)/.test(cause.message)
  if (isMissing) return error(checked, node, 'there is no such key', node?.key)
  return error(checked, node, 'the values here have the wrong type or cannot be used')
}

function error({ text, nodes }: Checked, node: Node | undefined, reason: string, missingKey?: string): Unfinished {
  const { offset } = node ?? nodes.values().next().value ?? { offset: 0 }
  return { outcome: 'error', position: positionAt(text, offset), reason, missingKey }
}
