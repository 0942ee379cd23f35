import type { Token } from './tokens.ts'

/** Operators and words of other languages, with their CEL equivalents. */
const WORDS: ReadonlyMap<string, string> = new Map([
  ['and', 'write && for "and"'],
  ['AND', 'write && for "and"'],
  ['or', 'write || for "or"'],
  ['OR', 'write || for "or"'],
  ['not', 'write ! for "not"'],
  ['NOT', 'write ! for "not"'],
  ['is', 'write == to compare'],
  ['eq', 'write == to compare'],
  ['ne', 'write != for "not equal"'],
  ['contains', 'write value in list, or text.contains("part")'],
  ['includes', 'write value in list, or text.contains("part")'],
  ['matches', 'write text.matches("pattern")'],
  ['startsWith', 'write text.startsWith("part")'],
  ['like', 'write text.matches("pattern")'],
])

/** Functions of other languages, in lower case, and what CEL has for them. */
export const MEANT: ReadonlyMap<string, string> = new Map([
  ['lower', 'text.lowerAscii()'],
  ['lowercase', 'text.lowerAscii()'],
  ['tolowercase', 'text.lowerAscii()'],
  ['tolower', 'text.lowerAscii()'],
  ['upper', 'text.upperAscii()'],
  ['uppercase', 'text.upperAscii()'],
  ['touppercase', 'text.upperAscii()'],
  ['includes', 'value in list, or text.contains("part")'],
  ['contains', 'value in list, or text.contains("part")'],
  ['matches', 'text.matches("pattern")'],
  ['startswith', 'text.startsWith("part")'],
  ['endswith', 'text.endsWith("part")'],
  ['any', 'list.exists(g, g == "dev")'],
  ['some', 'list.exists(g, g == "dev")'],
  ['exists', 'list.exists(g, g == "dev")'],
  ['every', 'list.all(g, g != "dev")'],
  ['all', 'list.all(g, g != "dev")'],
  ['len', 'size(list)'],
  ['length', 'size(list)'],
  ['count', 'size(list)'],
])

/** Values of other languages, in lower case. */
export const MEANT_NAMES: ReadonlyMap<string, string> = new Map([
  ['true', 'true'],
  ['false', 'false'],
  ['none', 'null'],
  ['nil', 'null'],
  ['undefined', 'has(claims.name) to ask whether a claim is there'],
])

const EQUAL = 'write == to compare'
const ARROW = 'a macro takes its variable as the first argument: claims.groups.exists(g, g == "dev")'
const isOperator = (token: Token | undefined, text: string): boolean =>
  token?.kind === 'operator' && token.text === text
const isBad = (token: Token | undefined, character: string): boolean =>
  token?.kind === 'bad' && token.problem === `found ${character}`

/** The probable intent at a syntax error; undefined when unknown. */
export function hintFor(tokens: readonly Token[], at: number): string | undefined {
  const token = tokens[at]
  const before = tokens[at - 1]
  const after = tokens[at + 1]
  if (token === undefined) return undefined
  if (isBad(token, '=')) {
    const touches = before !== undefined && before.end === token.start
    if (touches && isOperator(before, '==')) return 'write == to compare'
    if (touches && isOperator(before, '!=')) return 'write != for "not equal"'
    return EQUAL
  }
  if (isOperator(token, '>') && isOperator(before, '-')) return ARROW
  if (isOperator(token, '>') && isOperator(before, '<')) return 'write != for "not equal"'
  if (isBad(token, '&')) return 'write && for "and"'
  if (isBad(token, '|')) return 'write || for "or"'
  if (isBad(token, '~')) return 'write text.matches("pattern")'
  if (isBad(token, ';')) return 'an expression has one value and no semicolon'
  if (token.kind === 'bad' && /[“”‘’«»„]$/.test(token.problem)) return 'write straight quotes: " or \''
  const word = token.kind === 'name' ? WORDS.get(token.text) : undefined
  if (word !== undefined) return word
  // `not x`: the name was taken for a variable, and the word here can't follow it.
  if (before?.kind === 'name' && before.text.toLowerCase() === 'not' && after !== undefined) return WORDS.get('not')
  return undefined
}
