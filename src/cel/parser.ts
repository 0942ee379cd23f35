import { Cursor, SyntaxProblem } from './cursor.ts'
import { LIMITS } from './limits.ts'
import { bind, expandMacro } from './macros.ts'
import { LIBRARIES, OPTIONAL, Tree, type Expression, type Junction, type ParsedExpression } from './tree.ts'

/** Words that can't be a variable (language definition, "Syntax"). */
const RESERVED = new Set(
  'as break const continue else for function if import let loop package namespace return var void while in'.split(' '),
)
const LITERALS = new Set(['true', 'false', 'null', 'in'])
const RELATIONS = new Set(['==', '!=', '<', '<=', '>', '>=', 'in'])
const SUMS = new Set(['+', '-'])
const PRODUCTS = new Set(['*', '/', '%'])

/**
 * Parses CEL with its optional syntax and macros. Goes over the words once, from left to right, and never back: an error is
 * of the first word that can’t follow. Throws `SyntaxProblem`.
 */
export const parseTokens = (text: string): ParsedExpression => new Parser(text).parse()

class Parser {
  readonly #cursor: Cursor
  readonly #tree = new Tree()
  /** Results of optional selections, whose further selections stay optional. */
  readonly #optional = new WeakSet<Expression>()
  #conditionals = 0

  constructor(text: string) {
    this.#cursor = new Cursor(text)
  }

  parse(): ParsedExpression {
    const expression = this.#expression()
    if (this.#cursor.token.kind !== 'end') throw this.#cursor.unexpected('an operator or the end')
    return this.#tree.parsed(expression)
  }

  #expression(): Expression {
    const condition = this.#junction('||', '_||_', () => this.#junction('&&', '_&&_', () => this.#relation()))
    const { start } = this.#cursor.token
    if (!this.#cursor.take('?')) return condition
    this.#conditionals += 1
    if (this.#conditionals > LIMITS.conditionals)
      throw new SyntaxProblem(`the expression has more than ${LIMITS.conditionals} conditionals`, start)
    const yes = this.#junction('||', '_||_', () => this.#junction('&&', '_&&_', () => this.#relation()))
    this.#cursor.expect(':', 'an operator')
    return this.#tree.call(start, '_?_:_', [condition, yes, this.#expression()])
  }

  #junction(operator: string, kind: Junction, term: () => Expression): Expression {
    const first = term()
    if (this.#cursor.word !== operator) return first
    const terms = [first]
    const offsets: number[] = []
    while (this.#cursor.word === operator) {
      offsets.push(this.#cursor.token.start)
      this.#cursor.skip()
      terms.push(term())
    }
    return this.#tree.junction(kind, terms, offsets)
  }

  #chain(operators: ReadonlySet<string>, term: () => Expression): Expression {
    let left = term()
    for (let word = this.#cursor.word; word !== undefined && operators.has(word); word = this.#cursor.word) {
      const { start } = this.#cursor.token
      this.#cursor.skip()
      left = this.#tree.call(start, word === 'in' ? '@in' : `_${word}_`, [left, term()])
    }
    return left
  }

  #relation(): Expression {
    const product = () => this.#chain(PRODUCTS, () => this.#unary())
    return this.#chain(RELATIONS, () => this.#chain(SUMS, product))
  }

  /** Signs cancel each other out in pairs, as in other implementations; one before a number belongs to it. */
  #unary(): Expression {
    const { start } = this.#cursor.token
    const sign = this.#cursor.word
    if (sign !== '!' && sign !== '-') return this.#member()
    let count = 0
    while (this.#cursor.take(sign)) count += 1
    const isOdd = count % 2 === 1
    const { kind } = this.#cursor.token
    if (sign === '-' && (kind === 'int' || kind === 'double')) return this.#member(isOdd ? start : undefined)
    const operand = this.#member()
    return isOdd ? this.#tree.call(start, `${sign}_`, [operand]) : operand
  }

  #member(minusAt?: number): Expression {
    let operand = this.#primary(minusAt)
    for (;;) {
      const { start } = this.#cursor.token
      if (this.#cursor.take('.')) operand = this.#selected(operand, start)
      else if (this.#cursor.word === '[') operand = this.#indexed(operand, start)
      else return operand
    }
  }

  #selected(operand: Expression, start: number): Expression {
    const isOptional = this.#cursor.take('?')
    const token = this.#cursor.token
    if (token.kind !== 'quoted' && (token.kind !== 'name' || LITERALS.has(token.text)))
      throw this.#cursor.unexpected('a name')
    this.#cursor.skip()
    if (token.kind === 'name' && !isOptional && this.#cursor.word === '(')
      return this.#method(operand, token.text, start)
    if (isOptional || this.#optional.has(operand))
      return this.#optionally(operand, this.#tree.text(start, token.text), start)
    if (this.#cursor.word === '{') throw new SyntaxProblem('unknown type: there are no messages here', start)
    return this.#tree.select(start, operand, token.text)
  }

  #indexed(operand: Expression, start: number): Expression {
    const [isOptional, index] = this.#cursor.bracketed(
      '[',
      ']',
      () => [this.#cursor.take('?'), this.#expression()] as const,
    )
    return isOptional || this.#optional.has(operand)
      ? this.#optionally(operand, index, start)
      : this.#tree.call(start, '_[_]', [operand, index])
  }

  #optionally(operand: Expression, key: Expression, start: number): Expression {
    const selected = this.#tree.call(start, OPTIONAL.at, [operand, key])
    this.#optional.add(selected)
    return selected
  }

  #method(target: Expression, name: string, start: number): Expression {
    const args = this.#cursor.bracketed('(', ')', () => this.#cursor.items(')', () => this.#expression()))
    const { exprKind } = target
    if (exprKind.case === 'identExpr' && LIBRARIES.has(exprKind.value.name))
      return this.#library(`${exprKind.value.name}.${name}`, args, this.#tree.offsetOf(target))
    return expandMacro(this.#tree, start, target, name, args) ?? this.#tree.call(start, name, args, target)
  }

  #library(name: string, args: Expression[], start: number): Expression {
    const [variable, value, body] = args
    if (name !== 'cel.bind') {
      const called = this.#tree.call(start, name, args)
      if (name.startsWith('optional.of') || name === OPTIONAL.none) this.#optional.add(called)
      return called
    }
    if (args.length !== 3 || variable?.exprKind.case !== 'identExpr' || value === undefined || body === undefined)
      throw new SyntaxProblem('cel.bind takes a name, a value and an expression', start)
    return bind(this.#tree, start, variable.exprKind.value.name, value, body)
  }

  #primary(minusAt: number | undefined): Expression {
    const token = this.#cursor.token
    const { start } = token
    const minus = minusAt !== undefined
    switch (token.kind) {
      case 'int':
      case 'uint': {
        this.#cursor.skip()
        const number = BigInt(token.text)
        if (token.kind === 'uint') return this.#tree.constant(start, { case: 'uint64Value', value: number })
        return this.#tree.integer(minusAt ?? start, minus ? -number : number)
      }
      case 'double':
        this.#cursor.skip()
        return this.#tree.constant(minusAt ?? start, { case: 'doubleValue', value: minus ? -token.value : token.value })
      case 'string':
        this.#cursor.skip()
        return this.#tree.text(start, token.value)
      case 'bytes':
        this.#cursor.skip()
        return this.#tree.constant(start, { case: 'bytesValue', value: token.value })
      case 'name':
        return this.#named(token.text, start)
      case 'operator':
        return this.#opened(token.text, start)
      default:
        throw this.#cursor.unexpected('a value')
    }
  }

  #opened(operator: string, start: number): Expression {
    switch (operator) {
      case '(':
        return this.#cursor.bracketed('(', ')', () => this.#expression())
      case '[':
        return this.#listLiteral(start)
      case '{':
        return this.#mapLiteral(start)
      case '.':
        if (this.#cursor.next?.kind === 'name') {
          this.#cursor.skip()
          return this.#named(this.#cursor.word ?? '', start)
        }
        break
      default:
    }
    throw this.#cursor.unexpected('a value')
  }

  #named(name: string, start: number): Expression {
    if (name === 'true' || name === 'false') {
      this.#cursor.skip()
      return this.#tree.truth(start, name === 'true')
    }
    if (name === 'null') {
      this.#cursor.skip()
      return this.#tree.constant(start, { case: 'nullValue', value: 0 })
    }
    if (RESERVED.has(name)) throw this.#cursor.unexpected('a value')
    this.#cursor.skip()
    if (this.#cursor.word === '{') throw new SyntaxProblem('unknown type: there are no messages here', start)
    if (this.#cursor.word !== '(') return this.#tree.name(start, name)
    const args = this.#cursor.bracketed('(', ')', () => this.#cursor.items(')', () => this.#expression()))
    return name === 'has' ? this.#presence(args, start) : this.#tree.call(start, name, args)
  }

  #presence(args: Expression[], start: number): Expression {
    const [argument] = args
    if (args.length === 1 && argument?.exprKind.case === 'selectExpr') {
      const { operand, field } = argument.exprKind.value
      if (operand !== undefined) return this.#tree.select(start, operand, field, true)
    }
    if (args.length === 1 && argument !== undefined && this.#optional.has(argument))
      return this.#tree.call(start, 'hasValue', [], argument)
    throw new SyntaxProblem('has() takes a member such as claims.email; for other names write "name" in claims', start)
  }

  #listLiteral(start: number): Expression {
    const items = this.#cursor.bracketed('[', ']', () =>
      this.#cursor.items(']', () => ({ isOptional: this.#cursor.take('?'), value: this.#expression() })),
    )
    if (!items.some(({ isOptional }) => isOptional))
      return this.#tree.list(
        start,
        items.map(({ value }) => value),
      )
    return this.#tree.call(start, OPTIONAL.list, [
      this.#tree.list(
        start,
        items.map((item) => this.#wrapped(item, start)),
      ),
    ])
  }

  #mapLiteral(start: number): Expression {
    const entries = this.#cursor.bracketed('{', '}', () =>
      this.#cursor.items('}', () => {
        const isOptional = this.#cursor.take('?')
        const key = this.#expression()
        this.#cursor.expect(':', 'an operator')
        return { isOptional, key, value: this.#expression() }
      }),
    )
    if (!entries.some(({ isOptional }) => isOptional))
      return this.#tree.map(
        start,
        entries.map(({ key, value }) => [key, value] as const),
      )
    const parts = entries.flatMap((entry) => [entry.key, this.#wrapped(entry, start)])
    return this.#tree.call(start, OPTIONAL.map, [this.#tree.list(start, parts)])
  }

  #wrapped({ isOptional, value }: { isOptional: boolean; value: Expression }, start: number): Expression {
    return isOptional ? value : this.#tree.call(start, OPTIONAL.of, [value])
  }
}
