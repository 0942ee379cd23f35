import type { CelInput } from '@bufbuild/cel'
import type { Claims } from '../core/index.ts'
import { claimsToCel } from './claims.ts'
import { compileExpression, type MatcherResult } from './matcher.ts'
import { MatcherError, parseExpression, positionAt } from './parse.ts'
import type { Expression, ParsedExpression } from './tree.ts'

/** The fields of `mcp`. */
const FIELDS = ['method', 'kind', 'name', 'uri', 'args', 'annotations'] as const
export type RequestField = (typeof FIELDS)[number]

/** The variables of one request, converted once for all expressions that are evaluated for it. */
export type RequestVariables = Readonly<Record<'mcp' | 'claims' | 'actor' | 'route', CelInput>>

/** `onRead` is called with the name of each claim that an expression asks for. */
export const requestVariables = (
  values: {
    readonly mcp: Claims
    readonly claims: Claims
    readonly actor: Claims
    readonly route: string
  },
  onRead?: (claim: string) => void,
): RequestVariables => ({
  mcp: claimsToCel(values.mcp),
  claims: claimsToCel(values.claims, onRead),
  actor: claimsToCel(values.actor),
  route: values.route,
})

/** A compiled CEL expression over `mcp`, `claims`, `actor` and `route`. */
export interface RequestMatcher {
  readonly expression: string
  /** The fields of `mcp` that it may read. */
  readonly reads: ReadonlySet<RequestField>
  /** Evaluates; never throws, within the limits of a matcher of claims. */
  evaluate(variables: RequestVariables): MatcherResult
}

const VARIABLES = ['mcp', 'claims', 'actor', 'route']

/**
 * Compiles it under the rules and limits of a matcher. Throws `MatcherError` for what can never be evaluated to a bool, and
 * for a field that `mcp` does not have.
 */
export function compileRequestMatcher(expression: string): RequestMatcher {
  const reads = fieldsRead(parseExpression(expression), expression)
  return { expression, reads, evaluate: compileExpression(expression, VARIABLES) }
}

/** Every field where `mcp` is used as a whole. */
function fieldsRead(parsed: ParsedExpression, text: string): ReadonlySet<RequestField> {
  const reads = new Set<RequestField>()
  const note = (name: string, at: Expression): void => {
    const field = FIELDS.find((known) => known === name)
    if (field === undefined) {
      const offset = parsed.sourceInfo?.positions[at.id.toString()] ?? 0
      const message = `"mcp" has no field "${name}", expected ${FIELDS.join(', ')}`
      throw new MatcherError(message, positionAt(text, offset))
    }
    reads.add(field)
  }
  const visit = (expression: Expression | undefined): void => {
    const kind = expression?.exprKind
    if (expression === undefined || kind === undefined) return
    const all = (parts: readonly (Expression | undefined)[]): void => parts.forEach(visit)
    switch (kind.case) {
      case 'identExpr':
        if (isMcp(expression)) for (const field of FIELDS) reads.add(field)
        return
      case 'selectExpr':
        return isMcp(kind.value.operand) ? note(kind.value.field, expression) : visit(kind.value.operand)
      case 'callExpr': {
        const { function: name, target, args } = kind.value
        const field = name === '_[_]' && isMcp(args[0]) ? textOf(args[1]) : undefined
        return field === undefined ? all([target, ...args]) : note(field, expression)
      }
      case 'listExpr':
        return all(kind.value.elements)
      case 'structExpr':
        for (const { keyKind, value } of kind.value.entries)
          all([keyKind.case === 'mapKey' ? keyKind.value : undefined, value])
        return
      case 'comprehensionExpr': {
        const { iterRange, accuInit, loopCondition, loopStep, result } = kind.value
        return all([iterRange, accuInit, loopCondition, loopStep, result])
      }
      case 'constExpr':
      case undefined:
    }
  }
  visit(parsed.expr)
  return reads
}

const isMcp = (expression: Expression | undefined): boolean =>
  expression?.exprKind.case === 'identExpr' && expression.exprKind.value.name.replace(/^\./, '') === 'mcp'

function textOf(expression: Expression | undefined): string | undefined {
  if (expression?.exprKind.case !== 'constExpr') return undefined
  const { constantKind } = expression.exprKind.value
  return constantKind.case === 'stringValue' ? constantKind.value : undefined
}
