import { SyntaxProblem } from './cursor.ts'
import { LIMITS } from './limits.ts'
import { parseTokens } from './parser.ts'
import type { ParsedExpression } from './tree.ts'

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

/** The line and column of a UTF-16 offset in a text. */
export function positionAt(text: string, offset: number): Position {
  const before = text.slice(0, offset)
  const lineStart = Math.max(before.lastIndexOf('\n'), before.lastIndexOf('\r')) + 1
  const line = before.split(/\r\n|\r|\n/).length
  return { line, column: Array.from(before.slice(lineStart)).length + 1 }
}

/** Parses a CEL expression, in time proportional to its bounded length. Throws `MatcherError`. */
export function parseExpression(text: string): ParsedExpression {
  if (Buffer.byteLength(text) > LIMITS.bytes) {
    throw new MatcherError(`the expression is longer than ${LIMITS.bytes} bytes`, { line: 1, column: 1 })
  }
  try {
    return parseTokens(text)
  } catch (error) {
    if (error instanceof SyntaxProblem) throw new MatcherError(error.message, positionAt(text, error.offset))
    throw error
  }
}
