import { OPTIONAL, RESULT, type Expression, type Tree } from './tree.ts'

/** Expands a macro; undefined for arguments that are not its own. */
type Expand = (tree: Tree, at: number, target: Expression, args: readonly Expression[]) => Expression | undefined

const PAIR = '@pair'
const OPTION = '@option'
const LIST = '@list'

const nameOf = (expression: Expression | undefined): string | undefined =>
  expression?.exprKind.case === 'identExpr' ? expression.exprKind.value.name : undefined

/** `name` is `value` inside `body`: a fold over nothing (cel.bind). */
export function bind(tree: Tree, at: number, name: string, value: Expression, body: Expression): Expression {
  return tree.fold(at, {
    range: tree.list(at, []),
    variable: '@unused',
    accumulator: name,
    initial: value,
    condition: tree.truth(at, false),
    step: tree.name(at, name),
    result: body,
  })
}

/** The range and the variable of a macro over one or two variables, and how a body sees these. */
interface Loop {
  readonly range: Expression
  readonly variable: string
  readonly within: (body: Expression) => Expression
}

function loopOf(tree: Tree, at: number, range: Expression, names: readonly (string | undefined)[]): Loop | undefined {
  const [first, second] = names
  if (first === undefined) return undefined
  if (names.length === 1) return { range, variable: first, within: (body) => body }
  if (second === undefined) return undefined
  const part = (index: bigint) => tree.call(at, '_[_]', [tree.name(at, PAIR), tree.integer(at, index)])
  return {
    range: tree.call(at, '@pairs', [range]),
    variable: PAIR,
    within: (body) => bind(tree, at, first, part(0n), bind(tree, at, second, part(1n), body)),
  }
}

const result = (tree: Tree, at: number) => tree.name(at, RESULT)

const test = (tree: Tree, at: number, { range, variable, within }: Loop, body: Expression, wanted: boolean) => {
  const [negated, call] = wanted ? [tree.call(at, '!_', [result(tree, at)]), '_||_'] : [result(tree, at), '_&&_']
  return tree.fold(at, {
    range,
    variable,
    initial: tree.truth(at, !wanted),
    condition: tree.call(at, '@not_strictly_false', [negated]),
    step: tree.call(at, call, [result(tree, at), within(body)]),
  })
}

const exactlyOne = (tree: Tree, at: number, { range, variable, within }: Loop, body: Expression) =>
  tree.fold(at, {
    range,
    variable,
    initial: tree.integer(at, 0n),
    step: tree.call(at, '_?_:_', [
      within(body),
      tree.call(at, '_+_', [result(tree, at), tree.integer(at, 1n)]),
      result(tree, at),
    ]),
    result: tree.call(at, '_==_', [result(tree, at), tree.integer(at, 1n)]),
  })

/** A list of `item` for each element, or for each that passes `condition`. */
const collect = (tree: Tree, at: number, loop: Loop, item: Expression, condition?: Expression, finish?: string) => {
  const { range, variable, within } = loop
  const added = tree.call(at, '_+_', [result(tree, at), tree.list(at, [within(item)])])
  return tree.fold(at, {
    range,
    variable,
    initial: tree.list(at, []),
    step: condition === undefined ? added : tree.call(at, '_?_:_', [within(condition), added, result(tree, at)]),
    ...(finish === undefined ? {} : { result: tree.call(at, finish, [result(tree, at)]) }),
  })
}

/** A macro with one body, over one variable or two. */
const predicate =
  (make: (tree: Tree, at: number, loop: Loop, body: Expression) => Expression): Expand =>
  (tree, at, target, args) => {
    const body = args.at(-1)
    if (args.length < 2 || args.length > 3 || body === undefined) return undefined
    const loop = loopOf(tree, at, target, args.slice(0, -1).map(nameOf))
    return loop && make(tree, at, loop, body)
  }

/** `transformList(k, v, [condition,] item)` and its like. */
const transform =
  (item: (tree: Tree, at: number, key: string, value: Expression) => Expression, finish?: string): Expand =>
  (tree, at, target, args) => {
    const value = args.at(-1)
    const [key, second] = args.map(nameOf)
    if (args.length < 3 || args.length > 4 || value === undefined || key === undefined) return undefined
    const loop = loopOf(tree, at, target, [key, second])
    return loop && collect(tree, at, loop, item(tree, at, key, value), args.length === 4 ? args[2] : undefined, finish)
  }

const map: Expand = (tree, at, target, args) => {
  const [variable, second, third] = args
  const loop = loopOf(tree, at, target, [nameOf(variable)])
  if (loop === undefined || second === undefined || args.length > 3) return undefined
  return third === undefined ? collect(tree, at, loop, second) : collect(tree, at, loop, third, second)
}

const filter: Expand = (tree, at, target, args) => {
  const [variable, condition] = args
  const loop = loopOf(tree, at, target, [nameOf(variable)])
  if (loop === undefined || condition === undefined || args.length !== 2) return undefined
  return collect(tree, at, loop, tree.name(at, loop.variable), condition)
}

const sortBy: Expand = (tree, at, target, args) => {
  const [variable, key] = args
  if (args.length !== 2 || key === undefined) return undefined
  const loop = loopOf(tree, at, tree.name(at, LIST), [nameOf(variable)])
  if (loop === undefined) return undefined
  return bind(tree, at, LIST, target, tree.call(at, '@sortBy', [tree.name(at, LIST), collect(tree, at, loop, key)]))
}

const value = (tree: Tree, at: number) => tree.call(at, 'value', [], tree.name(at, OPTION))

/** `present` where the target has a value, else `absent`, which is not evaluated before. */
const choose = (tree: Tree, at: number, target: Expression, present: Expression, absent: Expression): Expression => {
  const has = tree.call(at, 'hasValue', [], tree.name(at, OPTION))
  return bind(tree, at, OPTION, target, tree.call(at, '_?_:_', [has, present, absent]))
}

const optional =
  (wrap: boolean): Expand =>
  (tree, at, target, args) => {
    const [variable, body] = args
    const name = nameOf(variable)
    if (args.length !== 2 || name === undefined || body === undefined) return undefined
    const bound = bind(tree, at, name, value(tree, at), body)
    const some = wrap ? tree.call(at, OPTIONAL.of, [bound]) : bound
    return choose(tree, at, target, some, tree.call(at, OPTIONAL.none, []))
  }

/** `or` and `orValue`: their argument is evaluated only where the target has no value. */
const otherwise =
  (keep: (tree: Tree, at: number) => Expression): Expand =>
  (tree, at, target, args) => {
    const [other] = args
    return args.length === 1 && other !== undefined ? choose(tree, at, target, keep(tree, at), other) : undefined
  }

const MACROS: ReadonlyMap<string, Expand> = new Map([
  ['exists', predicate((tree, at, loop, body) => test(tree, at, loop, body, true))],
  ['all', predicate((tree, at, loop, body) => test(tree, at, loop, body, false))],
  ['exists_one', predicate(exactlyOne)],
  ['existsOne', predicate(exactlyOne)],
  ['map', map],
  ['filter', filter],
  ['sortBy', sortBy],
  ['transformList', transform((_tree, _at, _key, item) => item)],
  ['transformMap', transform((tree, at, key, item) => tree.list(at, [tree.name(at, key), item]), '@mapOf')],
  ['transformMapEntry', transform((_tree, _at, _key, item) => item, '@merged')],
  ['optMap', optional(true)],
  ['optFlatMap', optional(false)],
  ['orValue', otherwise(value)],
  ['or', otherwise((tree, at) => tree.name(at, OPTION))],
])

/** Expands a method call that is a macro (language definition, "Macros"; extensions of cel-go); else undefined. */
export const expandMacro = (
  tree: Tree,
  at: number,
  target: Expression,
  name: string,
  args: readonly Expression[],
): Expression | undefined => MACROS.get(name)?.(tree, at, target, args)
