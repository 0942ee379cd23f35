import type { CelEnv } from '@bufbuild/cel'
import { meteredEnvironment } from './functions.ts'
import { kindsOf, type Kinds } from './kinds.ts'
import { parseExpression, type Position, positionAt } from './parse.ts'
import type { Expression, ParsedExpression } from './tree.ts'

/** Something in an expression that is allowed and hardly meant. */
export interface MatcherRemark {
  readonly position: Position
  readonly message: string
}

/** Claims that are lists in most tokens, by the last part of their name. */
const LISTS = new Set(['groups', 'roles', 'amr', 'permissions', 'entitlements', 'wids', 'cognito:groups'])
/** Claims that are numbers (RFC 7519 §4.1, OpenID Connect Core §2). */
const NUMBERS = new Set(['exp', 'nbf', 'iat', 'auth_time'])
const ANY_CLAIM: Kinds = new Set(['double', 'string', 'bool', 'list', 'map', 'null_type'])
const TEXT_TESTS = new Set(['contains', 'startsWith', 'endsWith', 'matches'])
/** More are no longer read. */
const MOST_REMARKS = 10
const INT: Kinds = new Set(['int'])
const BITS = /^math\.bit/

/**
 * Warnings for matchers that compile but can't become true: a list compared with a string, and claims used as
 * integers, which they never are (decisions §3.5). Throws `MatcherError` for invalid syntax.
 */
export function remarksOnMatcher(text: string): readonly MatcherRemark[] {
  const parsed = parseExpression(text)
  const { env } = meteredEnvironment()
  const remarks: MatcherRemark[] = []
  walk(parsed.expr, (call, expression) => {
    const message = listRemark(call) ?? numberRemark(call, env)
    if (message !== undefined && remarks.length < MOST_REMARKS)
      remarks.push({ position: positionAt(text, offsetOf(parsed, expression)), message })
  })
  return remarks
}

type CallExpression = Extract<Expression['exprKind'], { case: 'callExpr' }>['value']

/** A list where a text would have to be. */
function listRemark({ function: name, target, args }: CallExpression): string | undefined {
  if (name === '_==_' || name === '_!=_') {
    const list = args.map(listClaim).find((path) => path !== undefined)
    const text = args.map(literalText).find((value) => value !== undefined)
    if (list === undefined || text === undefined) return undefined
    const wanted = `${JSON.stringify(text)} in ${list}`
    return `"${list}" is a list in most tokens, and no list equals a text; write ${name === '_==_' ? wanted : `!(${wanted})`}`
  }
  const list = listClaim(target)
  if (list === undefined || !TEXT_TESTS.has(name)) return undefined
  const text = JSON.stringify(literalText(args[0]) ?? 'text')
  const wanted = name === 'contains' ? `${text} in ${list}` : `${list}.exists(x, x.${name}(${text}))`
  return `"${list}" is a list in most tokens, and lists have no ${name}(); write ${wanted}`
}

/** A claim where only a whole number fits. */
function numberRemark(call: CallExpression, env: CelEnv): string | undefined {
  const all = call.target === undefined ? call.args : [call.target, ...call.args]
  if (!all.some((argument) => claimPath(argument) !== undefined)) return undefined
  const forms = overloads(call, env)
  const kinds = all.map((argument) => kindsOfArgument(argument, env))
  const isPossible = (of: readonly Kinds[]) =>
    forms.some((types) => types.every((type, at) => type === 'dyn' || fits(of[at], type)))
  const isBits = BITS.test(call.function)
  if (isPossible(kinds) && !isBits) return undefined
  const at = all.findIndex(
    (argument, index) =>
      claimPath(argument) !== undefined && isPossible(kinds.map((kind, other) => (other === index ? INT : kind))),
  )
  const path = claimPath(all[at])
  if (path === undefined) return undefined
  const other = /^_[-+*/]_$/.test(call.function) ? ', or the other number with a point, as in 1.0' : ''
  return `numbers of claims are doubles, which do not fit here: write int(${path})${other}`
}

const fits = (kinds: Kinds, type: string): boolean => kinds === undefined || kinds.has(type)

/** The names of the types that each form of a function takes, with what it is a method of first. */
const overloads = ({ function: name, target, args }: CallExpression, env: CelEnv): string[][] =>
  [...(env.funcs.find(name) ?? [])]
    .filter((func) => (func.target !== undefined) === (target !== undefined) && func.arguments.length === args.length)
    .map((func) => [func.target, ...func.arguments].flatMap((type) => (type === undefined ? [] : [type.name])))

function kindsOfArgument(argument: Expression | undefined, env: CelEnv): Kinds {
  const path = claimPath(argument)
  if (path !== undefined) return NUMBERS.has(path.replace('claims.', '')) ? new Set(['double']) : ANY_CLAIM
  return argument === undefined ? undefined : kindsOf(argument, env, new Map())
}

function listClaim(expression: Expression | undefined): string | undefined {
  const path = claimPath(expression)
  return path !== undefined && LISTS.has(lastName(expression) ?? '') ? path : undefined
}

/** `claims.a.b` and `claims["a"]` as they are written; undefined for everything else. */
function claimPath(expression: Expression | undefined): string | undefined {
  const last = lastName(expression)
  if (expression === undefined || last === undefined) return undefined
  const isPlain = /^[A-Za-z_]\w*$/.test(last)
  const parent = parentOf(expression)
  const isRoot = parent?.exprKind.case === 'identExpr' && parent.exprKind.value.name === 'claims'
  const before = isRoot ? 'claims' : claimPath(parent)
  if (before === undefined) return undefined
  return isPlain ? `${before}.${last}` : `${before}[${JSON.stringify(last)}]`
}

function lastName(expression: Expression | undefined): string | undefined {
  const kind = expression?.exprKind
  if (kind?.case === 'selectExpr') return kind.value.testOnly ? undefined : kind.value.field
  return kind?.case === 'callExpr' && kind.value.function === '_[_]' ? literalText(kind.value.args[1]) : undefined
}

function parentOf({ exprKind }: Expression): Expression | undefined {
  if (exprKind.case === 'selectExpr') return exprKind.value.operand
  return exprKind.case === 'callExpr' ? exprKind.value.args[0] : undefined
}

function literalText(expression: Expression | undefined): string | undefined {
  if (expression?.exprKind.case !== 'constExpr') return undefined
  const { constantKind } = expression.exprKind.value
  return constantKind.case === 'stringValue' ? constantKind.value : undefined
}

const offsetOf = ({ sourceInfo }: ParsedExpression, { id }: Expression): number =>
  sourceInfo?.positions[id.toString()] ?? 0

/** Visits every call of a tree; how deep one can be is bounded by the parser. */
function walk(expression: Expression | undefined, visit: (call: CallExpression, at: Expression) => void): void {
  const kind = expression?.exprKind
  if (expression === undefined || kind === undefined) return
  const all = (parts: readonly (Expression | undefined)[]) => parts.forEach((part) => walk(part, visit))
  if (kind.case === 'selectExpr') all([kind.value.operand])
  else if (kind.case === 'listExpr') all(kind.value.elements)
  else if (kind.case === 'structExpr')
    all(
      kind.value.entries.flatMap(({ keyKind, value }) => [
        keyKind.case === 'mapKey' ? keyKind.value : undefined,
        value,
      ]),
    )
  else if (kind.case === 'comprehensionExpr') {
    const { iterRange, accuInit, loopCondition, loopStep, result } = kind.value
    all([iterRange, accuInit, loopCondition, loopStep, result])
  } else if (kind.case === 'callExpr') {
    visit(kind.value, expression)
    all([kind.value.target, ...kind.value.args])
  }
}
