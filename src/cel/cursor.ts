import { LIMITS } from './limits.ts'
import { hintFor } from './syntax-hints.ts'
import { tokensOf, type Token } from './tokens.ts'

/** Where and why a text is no expression; the offset is that of the furthest word that the parser got to. */
export class SyntaxProblem extends Error {
  readonly offset: number

  constructor(message: string, offset: number) {
    super(message)
    this.name = 'SyntaxProblem'
    this.offset = offset
  }
}

/** The words of a text, read once from left to right. Its methods throw `SyntaxProblem`. */
export class Cursor {
  readonly #tokens: readonly Token[]
  #at = 0
  #brackets = 0

  constructor(text: string) {
    this.#tokens = tokensOf(text)
  }

  get token(): Token {
    const token = this.#tokens[this.#at] ?? this.#tokens.at(-1)
    if (token === undefined) throw new SyntaxProblem('there is nothing', 0)
    return token
  }

  get next(): Token | undefined {
    return this.#tokens[this.#at + 1]
  }

  /** The operator or word at this position. */
  get word(): string | undefined {
    const { token } = this
    return token.kind === 'operator' || token.kind === 'name' ? token.text : undefined
  }

  skip(): void {
    this.#at += 1
  }

  take(word: string): boolean {
    if (this.word !== word) return false
    this.#at += 1
    return true
  }

  expect(word: string, ...others: readonly string[]): void {
    if (!this.take(word)) throw this.unexpected([...others, `"${word}"`].join(' or '))
  }

  /** The problem of an unexpected token. */
  unexpected(expected: string): SyntaxProblem {
    const { token } = this
    const hint = hintFor(this.#tokens, this.#at)
    const what = `${describe(token)}, but expected ${expected}`
    return new SyntaxProblem(hint === undefined ? what : `${what}; ${hint}`, token.start)
  }

  bracketed<T>(open: string, close: string, content: () => T): T {
    const { start } = this.token
    this.expect(open)
    this.#brackets += 1
    if (this.#brackets > LIMITS.brackets) throw new SyntaxProblem('the expression is nested too deeply', start)
    const inside = content()
    this.#brackets -= 1
    this.expect(close, 'an operator', ...(open === '(' ? [] : ['","']))
    return inside
  }

  /** Items with commas between; one more comma may end a list or a map, but no arguments. */
  items<T>(close: string, item: () => T): T[] {
    const items: T[] = []
    while (this.word !== close) {
      items.push(item())
      if (!this.take(',')) break
      if (close === ')' && this.word === close) throw this.unexpected('a value')
    }
    return items
  }
}

function describe(token: Token): string {
  switch (token.kind) {
    case 'end':
      return 'found the end of input'
    case 'name':
    case 'operator':
      return `found ${token.text.slice(0, 40)}`
    case 'quoted':
      return 'found a name in back quotes'
    case 'string':
      return 'found a text'
    case 'bytes':
      return 'found bytes'
    case 'bad':
      return token.problem
    default:
      return 'found a number'
  }
}
