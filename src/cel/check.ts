import type { CelEnv } from '@bufbuild/cel'
import { nearest } from '../core/index.ts'
import { MEANT, MEANT_NAMES } from './syntax-hints.ts'
import { type Kinds, kindsOf } from './kinds.ts'
import { LIMITS } from './limits.ts'
import { MatcherError, positionAt } from './parse.ts'
import { INDEX, RANGE, type Expression, type ParsedExpression } from './tree.ts'
import type { Patterns } from './patterns.ts'

/** A place in a checked expression, for the trace of a failed evaluation. */
export interface Node {
  /** In UTF-16 units; lines are counted on demand, because there may be thousands of nodes. */
  readonly offset: number
  /** The key that is looked up here, where the expression itself spells it. */
  readonly key: string | undefined
}

/** Kinds of the predefined variables. */
const VARIABLE_KINDS: ReadonlyMap<string, Kinds> = new Map([
  ...['claims', 'mcp', 'actor'].map((name) => [name, new Set(['map'])] as const),
  ['route', new Set(['string'])] as const,
])

/** Names of types, as in `type(claims.x) == string`. */
const TYPES = new Set(['int', 'uint', 'double', 'bool', 'string', 'bytes', 'list', 'map', 'null_type', 'type'])
const MESSAGE_TYPES = new Set(['google.protobuf.Timestamp', 'google.protobuf.Duration'])
/** Calls that the library plans itself. */
const STRUCTURAL = new Set(['_&&_', '_||_', '_?_:_', '@not_strictly_false'])
const MAX_INT = 2n ** 63n - 1n
const MAX_UINT = 2n ** 64n - 1n

/**
 * Checks a parsed expression, and writes the metering of macros and the exact index into it. Refuses unknown variables
 * and functions, a result that can't be what is wanted, and what is over a limit. Returns the nodes by id. Throws `MatcherError`.
 */
export function checkExpression(
  text: string,
  parsed: ParsedExpression,
  env: CelEnv,
  patterns: Patterns,
  variables: readonly string[],
  wanted: 'bool' | 'string' = 'bool',
): ReadonlyMap<number, Node> {
  const checker = new Checker(text, parsed, env, patterns)
  checker.visit(parsed.expr, { variables: new Set(variables), depth: 0, macros: 0 })
  const kinds = kindsOf(parsed.expr, env, VARIABLE_KINDS)
  if (kinds !== undefined && !kinds.has(wanted)) {
    const found = [...kinds].join(' or ')
    throw new MatcherError(`the result must be a ${wanted}, but this is always ${found}`, { line: 1, column: 1 })
  }
  return checker.nodes
}

interface Scope {
  readonly variables: ReadonlySet<string>
  readonly depth: number
  readonly macros: number
}

class Checker {
  readonly nodes = new Map<number, Node>()
  readonly #text: string
  readonly #parsed: ParsedExpression
  readonly #env: CelEnv
  readonly #patterns: Patterns
  #literalElements = 0

  constructor(text: string, parsed: ParsedExpression, env: CelEnv, patterns: Patterns) {
    this.#text = text
    this.#parsed = parsed
    this.#env = env
    this.#patterns = patterns
  }

  /** Visits a tree and returns how many nodes of it are evaluated each time that it is. */
  visit(expression: Expression, scope: Scope): number {
    if (scope.depth > LIMITS.depth) throw this.#error(expression, 'the expression is nested too deeply')
    const inner = { ...scope, depth: scope.depth + 1 }
    this.#note(expression)
    const { exprKind } = expression
    switch (exprKind.case) {
      case 'constExpr':
        this.#constant(expression, exprKind.value.constantKind)
        return 1
      case 'identExpr':
        this.#variable(expression, exprKind.value.name, scope)
        return 1
      case 'selectExpr': {
        const { operand } = exprKind.value
        if (operand === undefined || MESSAGE_TYPES.has(qualifiedName(expression) ?? '')) return 1
        return 1 + this.visit(operand, inner)
      }
      case 'listExpr':
        this.#literals(expression, exprKind.value.elements.length)
        return this.#all(exprKind.value.elements, inner)
      case 'structExpr':
        if (exprKind.value.messageName !== '')
          throw this.#error(expression, `unknown type "${exprKind.value.messageName}"`)
        this.#literals(expression, exprKind.value.entries.length)
        return this.#all(
          exprKind.value.entries.flatMap((entry) => [
            entry.keyKind.case === 'mapKey' ? entry.keyKind.value : undefined,
            entry.value,
          ]),
          inner,
        )
      case 'callExpr':
        return this.#call(expression, exprKind.value, inner)
      case 'comprehensionExpr':
        return this.#macro(expression, exprKind.value, inner)
      default:
        throw this.#error(expression, 'the expression cannot be parsed')
    }
  }

  #all(expressions: readonly (Expression | undefined)[], scope: Scope): number {
    return expressions.reduce((sum, item) => sum + (item === undefined ? 0 : this.visit(item, scope)), 1)
  }

  #call(expression: Expression, call: CallExpression, scope: Scope): number {
    const { target, args } = call
    // A macro appends `[element]` to its result; that is no literal of the person who wrote the expression.
    const [first, second] = args
    if (call.function === '_+_' && first?.exprKind.case === 'identExpr' && first.exprKind.value.name.startsWith('@')) {
      if (second?.exprKind.case === 'listExpr') return 2 + this.#all(second.exprKind.value.elements, scope)
    }
    if (call.function === '_[_]') call.function = INDEX
    if (!STRUCTURAL.has(call.function) && !this.#isKnown(call)) {
      const what = target === undefined ? 'function' : 'method'
      const name = `${call.function}" with ${args.length} argument${args.length === 1 ? '' : 's'}`
      const meant = this.#meantBy(call.function)
      throw this.#error(expression, `unknown ${what} "${name}${meant === undefined ? '' : `; write ${meant}`}`)
    }
    const nodes = this.#all([target, ...args], scope)
    if (call.function === 'matches') this.#pattern(args[0])
    return nodes
  }

  /** The CEL function for one of another language, or for a misspelled one. */
  #meantBy(name: string): string | undefined {
    const known = MEANT.get(name.toLowerCase())
    if (known !== undefined || this.#env.funcs.find(name) !== undefined) return known
    return MEANT.get(nearest(name, [...MEANT.keys()]) ?? '')
  }

  #isKnown(call: CallExpression): boolean {
    const isMethod = call.target !== undefined
    return [...(this.#env.funcs.find(call.function) ?? [])].some(
      (func) => (func.target !== undefined) === isMethod && func.arguments.length === call.args.length,
    )
  }

  #macro(expression: Expression, macro: MacroExpression, scope: Scope): number {
    const { accuInit, iterRange, loopCondition, loopStep, result } = macro
    if (iterRange === undefined || loopStep === undefined)
      throw this.#error(expression, 'the expression cannot be parsed')
    if (isBinding(macro)) {
      const bound = { ...scope, variables: new Set([...scope.variables, macro.accuVar]) }
      return this.#all([accuInit], scope) + this.#all([result], bound)
    }
    const macros = scope.macros + 1
    if (macros > LIMITS.nestedMacros) {
      throw this.#error(expression, `more than ${LIMITS.nestedMacros} macros inside each other`)
    }
    const body = { ...scope, macros, variables: new Set([...scope.variables, macro.accuVar, macro.iterVar]) }
    const range = this.visit(iterRange, scope)
    const step = this.visit(loopStep, body)
    if (accuInit?.exprKind.case !== 'listExpr') this.#all([accuInit], scope)
    this.#all([loopCondition, result], body)
    macro.iterRange = rangeCall(iterRange, Math.ceil(step / LIMITS.nodesPerStep))
    return 2 + range
  }

  #variable(expression: Expression, name: string, scope: Scope): void {
    const bare = name.startsWith('.') ? name.slice(1) : name
    if (scope.variables.has(bare) || TYPES.has(bare)) return
    const meant = MEANT_NAMES.get(bare.toLowerCase())
    const known = [...scope.variables].filter((variable) => VARIABLE_KINDS.has(variable))
    const variables =
      known.length > 1 ? `the variables are ${known.join(', ')}` : 'the claims of the token are in "claims"'
    const hint = meant === undefined ? variables : `write ${meant}`
    throw this.#error(expression, `unknown variable "${bare}"; ${hint}`)
  }

  #constant(expression: Expression, constant: ConstantKind): void {
    let fits = true
    if (constant.case === 'int64Value') fits = constant.value <= MAX_INT && constant.value >= -MAX_INT - 1n
    else if (constant.case === 'uint64Value') fits = constant.value <= MAX_UINT
    if (!fits) throw this.#error(expression, 'the number does not fit into 64 bits')
  }

  #literals(expression: Expression, count: number): void {
    this.#literalElements += count
    if (this.#literalElements <= LIMITS.literalElements) return
    throw this.#error(expression, `more than ${LIMITS.literalElements} elements in list and map literals`)
  }

  #pattern(argument: Expression | undefined): void {
    if (argument?.exprKind.case !== 'constExpr') return
    const { constantKind } = argument.exprKind.value
    if (constantKind.case !== 'stringValue') return
    try {
      this.#patterns.add(constantKind.value)
    } catch (error) {
      const reason =
        error instanceof Error ? error.message.replace(/^error parsing regexp: /, '') : 'it cannot be parsed'
      throw this.#error(argument, `not a regular expression: ${reason.slice(0, 200)}`)
    }
  }

  #note(expression: Expression): void {
    const { exprKind } = expression
    let key: string | undefined
    if (exprKind.case === 'selectExpr') key = exprKind.value.field
    else if (exprKind.case === 'callExpr' && exprKind.value.function === '_[_]')
      key = literalKey(exprKind.value.args[1])
    this.nodes.set(Number(expression.id), { offset: this.#offset(expression), key })
  }

  #offset(expression: Expression): number {
    return this.#parsed.sourceInfo?.positions[expression.id.toString()] ?? 0
  }

  #error(expression: Expression, message: string): MatcherError {
    return new MatcherError(message, positionAt(this.#text, this.#offset(expression)))
  }
}

type CallExpression = Extract<Expression['exprKind'], { case: 'callExpr' }>['value']
type MacroExpression = Extract<Expression['exprKind'], { case: 'comprehensionExpr' }>['value']
type ConstantKind = Extract<Expression['exprKind'], { case: 'constExpr' }>['value']['constantKind']

function literalKey(key: Expression | undefined): string | undefined {
  if (key?.exprKind.case !== 'constExpr') return undefined
  const { value } = key.exprKind.value.constantKind
  return typeof value === 'string' || typeof value === 'bigint' ? String(value) : undefined
}

/** A name for a value (`cel.bind`, and what macros make of two variables): a fold over nothing. */
const isBinding = ({ iterVar }: MacroExpression): boolean => iterVar === '@unused'

/** The name with dots, as long as it has no more parts than those of message types. */
function qualifiedName(expression: Expression, parts = 3): string | undefined {
  const { exprKind } = expression
  if (parts < 1) return undefined
  if (exprKind.case === 'identExpr') return exprKind.value.name
  if (exprKind.case !== 'selectExpr' || exprKind.value.testOnly || exprKind.value.operand === undefined)
    return undefined
  const parent = qualifiedName(exprKind.value.operand, parts - 1)
  return parent === undefined ? undefined : `${parent}.${exprKind.value.field}`
}

function rangeCall(iterRange: Expression, weight: number): Expression {
  const constant: Expression = {
    $typeName: 'cel.expr.Expr',
    id: iterRange.id,
    exprKind: {
      case: 'constExpr',
      value: { $typeName: 'cel.expr.Constant', constantKind: { case: 'int64Value', value: BigInt(weight) } },
    },
  }
  return {
    $typeName: 'cel.expr.Expr',
    id: iterRange.id,
    exprKind: {
      case: 'callExpr',
      value: { $typeName: 'cel.expr.Expr.Call', function: RANGE, args: [iterRange, constant] },
    },
  }
}
