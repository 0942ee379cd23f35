import type { parse } from '@bufbuild/cel'
import { cel } from './library.ts'
import { LIMITS } from './limits.ts'

/** A place in an expression, both counted from 1; columns are Unicode characters. */
export interface Position {
  readonly line: number
  readonly column: number
}

/** An expression that can't be used, and where it goes wrong. Thrown at load, never per request. */
export class MatcherError extends Error {
  readonly line: number
  readonly column: number

  constructor(message: string, position: Position) {
    super(message)
    this.name = 'MatcherError'
    this.line = position.line
    this.column = position.column
  }
}

export type ParsedExpression = ReturnType<typeof parse>
export type Expression = ParsedExpression['expr']

/** The line and column of a UTF-16 offset in a text. */
export function positionAt(text: string, offset: number): Position {
  const before = text.slice(0, offset)
  const lineStart = Math.max(before.lastIndexOf('\n'), before.lastIndexOf('\r')) + 1
  const line = before.split(/\r\n|\r|\n/).length
  return { line, column: Array.from(before.slice(lineStart)).length + 1 }
}

/**
 * Parses a CEL expression. Size and nesting are bounded before the parser sees the text, because it recurses.
 * Throws `MatcherError`.
 */
export function parseExpression(text: string): ParsedExpression {
  if (Buffer.byteLength(text) > LIMITS.bytes) {
    throw new MatcherError(`the expression is longer than ${LIMITS.bytes} bytes`, { line: 1, column: 1 })
  }
  boundNesting(text)
  try {
    return cel().parse(withoutComments(text))
  } catch (error) {
    throw syntaxError(error, text)
  }
}

/** The parts of a CEL text that can hold brackets without meaning them: comments and strings, raw or not. */
const QUOTED =
  /\/\/[^\n\r]*|(?:[rR][bB]?|[bB][rR])(?:"""[^]*?"""|'''[^]*?'''|"[^"\n\r]*"|'[^'\n\r]*')|"""(?:\\[^]|[^\\])*?"""|'''(?:\\[^]|[^\\])*?'''|"(?:\\.|[^"\\\n\r])*"|'(?:\\.|[^'\\\n\r])*'/g

/** The parser takes one comment at a place, and none at the end; with spaces instead every offset stays as it is. */
function withoutComments(text: string): string {
  return text.replace(QUOTED, (quoted) => (quoted.startsWith('//') ? ' '.repeat(quoted.length) : quoted))
}

function boundNesting(text: string): void {
  const code = text.replace(QUOTED, (quoted) => ' '.repeat(quoted.length))
  let open = 0
  let conditionals = 0
  for (let offset = 0; offset < code.length; offset++) {
    const character = code[offset]
    if (character === '(' || character === '[' || character === '{') open++
    else if (character === ')' || character === ']' || character === '}') open--
    else if (character === '?') conditionals++
    if (open > LIMITS.brackets || conditionals > LIMITS.conditionals) {
      const what = open > LIMITS.brackets ? 'is nested too deeply' : `has more than ${LIMITS.conditionals} conditionals`
      throw new MatcherError(`the expression ${what}`, positionAt(text, offset))
    }
  }
}

interface LocatedError {
  readonly rawMessage: string
  readonly location: { readonly start: { readonly offset: number } }
}

const characterAt = (text: string, offset: number): string => String.fromCodePoint(text.codePointAt(offset) ?? 0xfffd)

function syntaxError(error: unknown, text: string): MatcherError {
  if (error instanceof Error && 'location' in error && 'rawMessage' in error) {
    const { location, rawMessage } = error as unknown as LocatedError
    const { offset } = location.start
    // The parser quotes half of a character that takes two code units.
    const whole = rawMessage.replace(
      /found [\uD800-\uDBFF](?![\uDC00-\uDFFF])/,
      () => `found ${characterAt(text, offset)}`,
    )
    const message = whole.length > 200 ? `${whole.slice(0, 200).toWellFormed()}…` : whole
    return new MatcherError(message, positionAt(text, offset))
  }
  // A stack that is too short for what the bounds above let through must not become an unreadable crash.
  const what = error instanceof RangeError ? 'the expression is nested too deeply' : 'the expression cannot be parsed'
  return new MatcherError(what, { line: 1, column: 1 })
}
