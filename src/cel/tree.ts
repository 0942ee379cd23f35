import type { parse } from '@bufbuild/cel'

export type ParsedExpression = ReturnType<typeof parse>
export type Expression = ParsedExpression['expr']
type ExpressionKind = Expression['exprKind']
type ConstantKind = Extract<ExpressionKind, { case: 'constExpr' }>['value']['constantKind']

/** The variable that a macro collects its result in. */
export const RESULT = '@result'

/** The two operators that join any number of terms. */
export type Junction = '_||_' | '_&&_'

/** Calls that only the parser and the checker write into an expression; no name with `@` can be typed. */
export const RANGE = '@range'
export const INDEX = '@index'

/** Functions of optional values. */
export const OPTIONAL = Object.freeze({
  of: 'optional.of',
  none: 'optional.none',
  ofNonZeroValue: 'optional.ofNonZeroValue',
  unwrap: 'optional.unwrap',
  /** `a.?b`, `a[?b]`, and what is selected from these. */
  at: '@optionalAt',
  /** `[?a, b]` of a list of optional values. */
  list: '@optionalList',
  /** `{?k: v}` of keys and optional values in turn. */
  map: '@optionalMap',
})

/** The names before the dot of functions that belong to a library. */
export const LIBRARIES: ReadonlySet<string> = new Set(['cel', 'sets', 'lists', 'math', 'optional', 'strings'])

/** Makes the syntax tree that the evaluator plans (`cel.expr`), and keeps where each node is in the text. */
export class Tree {
  readonly #positions: Record<string, number> = {}
  #last = 0n

  parsed(expr: Expression): ParsedExpression {
    const sourceInfo = {
      $typeName: 'cel.expr.SourceInfo' as const,
      syntaxVersion: '',
      location: '',
      lineOffsets: [],
      positions: this.#positions,
      macroCalls: {},
      extensions: [],
    }
    return { $typeName: 'cel.expr.ParsedExpr', expr, sourceInfo }
  }

  offsetOf({ id }: Expression): number {
    return this.#positions[id.toString()] ?? 0
  }

  #node(offset: number, exprKind: ExpressionKind): Expression {
    this.#last += 1n
    this.#positions[this.#last.toString()] = offset
    return { $typeName: 'cel.expr.Expr', id: this.#last, exprKind }
  }

  constant(offset: number, constantKind: ConstantKind): Expression {
    return this.#node(offset, { case: 'constExpr', value: { $typeName: 'cel.expr.Constant', constantKind } })
  }

  text(offset: number, value: string): Expression {
    return this.constant(offset, { case: 'stringValue', value })
  }

  truth(offset: number, value: boolean): Expression {
    return this.constant(offset, { case: 'boolValue', value })
  }

  integer(offset: number, value: bigint): Expression {
    return this.constant(offset, { case: 'int64Value', value })
  }

  name(offset: number, name: string): Expression {
    return this.#node(offset, { case: 'identExpr', value: { $typeName: 'cel.expr.Expr.Ident', name } })
  }

  select(offset: number, operand: Expression, field: string, testOnly = false): Expression {
    return this.#node(offset, {
      case: 'selectExpr',
      value: { $typeName: 'cel.expr.Expr.Select', operand, field, testOnly },
    })
  }

  call(offset: number, name: string, args: Expression[], target?: Expression): Expression {
    const value = { $typeName: 'cel.expr.Expr.Call' as const, function: name, args }
    return this.#node(offset, { case: 'callExpr', value: target === undefined ? value : { ...value, target } })
  }

  list(offset: number, elements: Expression[]): Expression {
    return this.#node(offset, {
      case: 'listExpr',
      value: { $typeName: 'cel.expr.Expr.CreateList', elements, optionalIndices: [] },
    })
  }

  map(offset: number, pairs: readonly (readonly [key: Expression, value: Expression])[]): Expression {
    const entries = pairs.map(([key, value]) => ({
      $typeName: 'cel.expr.Expr.CreateStruct.Entry' as const,
      id: (this.#last += 1n),
      keyKind: { case: 'mapKey' as const, value: key },
      value,
      optionalEntry: false,
    }))
    return this.#node(offset, {
      case: 'structExpr',
      value: { $typeName: 'cel.expr.Expr.CreateStruct', messageName: '', entries },
    })
  }

  /** Many terms as a tree whose depth is the logarithm of their number. */
  junction(kind: Junction, terms: readonly Expression[], offsets: readonly number[]): Expression {
    const join = (from: number, to: number): Expression => {
      const [only] = terms.slice(from, from + 1)
      if (to - from <= 1 && only !== undefined) return only
      const middle = Math.ceil((from + to) / 2)
      return this.call(offsets[middle - 1] ?? 0, kind, [join(from, middle), join(middle, to)])
    }
    return join(0, terms.length)
  }

  /** `range` folded: `step` over each element, from `initial`, as long as `condition`. */
  fold(offset: number, fold: Fold): Expression {
    const { range, variable, accumulator = RESULT, initial, condition, step, result } = fold
    return this.#node(offset, {
      case: 'comprehensionExpr',
      value: {
        $typeName: 'cel.expr.Expr.Comprehension',
        accuVar: accumulator,
        accuInit: initial,
        iterVar: variable,
        iterVar2: '',
        iterRange: range,
        loopStep: step,
        loopCondition: condition ?? this.truth(offset, true),
        result: result ?? this.name(offset, accumulator),
      },
    })
  }
}

export interface Fold {
  readonly range: Expression
  readonly variable: string
  /** Default `@result`. */
  readonly accumulator?: string
  readonly initial: Expression
  /** Default: always. */
  readonly condition?: Expression
  readonly step: Expression
  /** Default: what was accumulated. */
  readonly result?: Expression
}
