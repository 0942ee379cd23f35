import { Composer, type Document, Lexer, type LineCounter, Parser } from 'yaml'
import { type Budget, Limit, YAML_LIMITS } from './yaml-limits.ts'

/**
 * Composes the documents of the text; `lines` records where its lines begin. Lexer and parser have their own stack;
 * the composer recurses, so depth is limited before it. Throws `Limit`.
 */
export function* composeYaml(text: string, lines: LineCounter, budget: Budget): Generator<Document.Parsed> {
  lines.addNewLine(0)
  const parser = new Parser(lines.addNewLine)
  // The reader finds duplicate keys: the library's own search is quadratic.
  const composer = new Composer({ uniqueKeys: false, strict: true, prettyErrors: false, version: '1.2', merge: false })
  let offset = 0
  const lexemes = new Lexer().lex(text)
  for (const lexeme of lexemes) {
    offset += lexeme.length
    budget.tokens -= 1
    if (budget.tokens < 0) throw new Limit(offset, tooManyTokens(lexemes, budget.mostTokens))
    for (const token of parser.next(lexeme)) {
      // Each of these becomes an error or a warning with its own stack trace, which is expensive.
      if (token.type === 'error' || token.type === 'directive') budget.misplaced -= 1
      if (budget.misplaced < 0)
        throw new Limit(offset, `more than ${YAML_LIMITS.misplaced} tokens that are out of place`)
      yield* composer.next(token)
    }
    if (parser.stack.length > YAML_LIMITS.depth * 2)
      throw new Limit(offset, `nested too deeply, expected at most ${YAML_LIMITS.depth} levels`)
  }
  for (const token of parser.end()) yield* composer.next(token)
  yield* composer.end()
}

/** Counts the remaining tokens: lexing is cheap compared with composing documents. */
function tooManyTokens(rest: Iterable<string>, most: number): string {
  let count = most + 1
  for (const lexeme of rest) count += lexeme === '' ? 0 : 1
  return `too many tokens: ${count} in one file, expected at most ${most}; split it into several files`
}

/** Invalid characters of the text, and their offset. */
export function unreadableText(text: string): { readonly offset: number; readonly message: string } | undefined {
  if (text.length > YAML_LIMITS.bytes)
    return {
      offset: 0,
      message: `the file is too large: ${text.length} characters, expected at most ${YAML_LIMITS.bytes} bytes`,
    }
  // oxlint-disable-next-line no-control-regex -- characters that YAML 1.2 §5.1 does not allow are what this looks for
  const offset = text.search(/[\0-\x08\x0B\x0C\x0E-\x1F\x7F]/)
  return offset < 0 ? undefined : { offset, message: 'a control character, expected text' }
}

/** The relevant errors and warnings of a document. After indentation by a tab the other errors follow from it. */
export function relevantErrors({ errors, warnings }: Document.Parsed): readonly { offset: number; message: string }[] {
  const tab = errors.find((error) => error.code === 'TAB_AS_INDENT')
  const telling = [...errors.filter((error) => tab === undefined || error.pos[0] <= tab.pos[0]), ...warnings]
  return telling.map(({ pos, message }) => ({ offset: pos[0], message: sentence(message) }))
}

/** The library's message as a clause, without quoted content. */
function sentence(message: string): string {
  const [first = ''] = message.split('\n')
  // Text quoted by the library may be a secret in the wrong place.
  const clean = first.replace(/: .*$| %.*$/, '').slice(0, 300)
  return clean.charAt(0).toLowerCase() + clean.slice(1)
}
