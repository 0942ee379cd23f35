import type { CelEnv } from '@bufbuild/cel'
import type { Expression } from './tree.ts'

/** The types that an expression can have, by CEL name; undefined when only evaluation can determine it. */
export type Kinds = ReadonlySet<string> | undefined

const only = (name: string): Kinds => new Set([name])
const BOOLEAN_CALLS = new Set(['_&&_', '_||_', '!_', '@not_strictly_false', '_==_', '_!=_', '@in'])
const CONSTANTS: Readonly<Record<string, string>> = {
  boolValue: 'bool',
  int64Value: 'int',
  uint64Value: 'uint',
  doubleValue: 'double',
  stringValue: 'string',
  bytesValue: 'bytes',
  nullValue: 'null',
}

/** The possible kinds of an expression's result, as far as its text determines them. */
export function kindsOf(expression: Expression, env: CelEnv, variables: ReadonlyMap<string, Kinds>): Kinds {
  const { exprKind } = expression
  switch (exprKind.case) {
    case 'constExpr':
      return only(CONSTANTS[exprKind.value.constantKind.case ?? ''] ?? 'null')
    case 'identExpr':
      return variables.get(exprKind.value.name)
    case 'selectExpr':
      return exprKind.value.testOnly ? only('bool') : undefined
    case 'listExpr':
      return only('list')
    case 'structExpr':
      return exprKind.value.messageName === '' ? only('map') : undefined
    case 'comprehensionExpr': {
      const { accuVar, accuInit, result } = exprKind.value
      if (accuInit === undefined || result === undefined) return undefined
      const inner = new Map(variables).set(accuVar, kindsOf(accuInit, env, variables))
      return kindsOf(result, env, inner)
    }
    case 'callExpr':
      return kindsOfCall(exprKind.value, env, variables)
    default:
      return undefined
  }
}

type CallExpression = Extract<Expression['exprKind'], { case: 'callExpr' }>['value']

function kindsOfCall(call: CallExpression, env: CelEnv, variables: ReadonlyMap<string, Kinds>): Kinds {
  if (BOOLEAN_CALLS.has(call.function)) return only('bool')
  if (call.function === '_?_:_') {
    const [, yes, no] = call.args
    if (yes === undefined || no === undefined) return undefined
    return union([kindsOf(yes, env, variables), kindsOf(no, env, variables)])
  }
  const isMethod = call.target !== undefined
  const overloads = [...env.funcs].filter(
    (func) =>
      func.name === call.function &&
      (func.target !== undefined) === isMethod &&
      func.arguments.length === call.args.length,
  )
  if (overloads.length === 0) return undefined
  return union(overloads.map((func) => (func.result.name === 'dyn' ? undefined : only(func.result.name))))
}

function union(all: readonly Kinds[]): Kinds {
  const names = new Set<string>()
  for (const kinds of all) {
    if (kinds === undefined) return undefined
    for (const name of kinds) names.add(name)
  }
  return names
}
