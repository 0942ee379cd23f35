import { Composer, isAlias, isMap, isScalar, isSeq, Lexer, LineCounter, Parser } from 'yaml'
import type { Document, Node, Pair, YAMLMap } from 'yaml'

/** Bounds of one file; what is beyond them is an error before it costs time or memory. */
export const YAML_LIMITS = {
  bytes: 4 * 1024 * 1024,
  tokens: 300_000,
  depth: 64,
  /** Values after aliases are expanded, over all documents of the file. */
  values: 200_000,
  documents: 2_000,
  problems: 1_000,
} as const

/** From 1, as editors count. */
export interface Place {
  readonly line: number
  readonly column: number
}

export interface TextProblem extends Place {
  readonly message: string
}

/** One YAML or JSON document as plain data, with the place of every part of it. */
export interface TextDocument {
  readonly value: unknown
  readonly start: Place
  /**
   * Where a path is: of a scalar its value, of anything else its key; of something that is missing, the innermost
   * existing thing around it. `key` asks for the key in any case.
   */
  locate(path: readonly PropertyKey[], what?: 'key' | 'value'): Place
}

/**
 * Reads all documents of a YAML or JSON text. Duplicate keys, unknown tags, cyclic or multiplying aliases, deep nesting
 * and oversized texts are problems; work and memory are bounded by `YAML_LIMITS` whatever the text is.
 */
export function readYaml(text: string): { documents: TextDocument[]; problems: TextProblem[] } {
  const lines = new LineCounter()
  const problems: TextProblem[] = []
  const place = (offset: number): Place => {
    const { line, col } = lines.linePos(offset)
    return { line: Math.max(line, 1), column: Math.max(col, 1) }
  }
  const add = (offset: number, message: string): void => {
    problems.push({ ...place(offset), message })
  }
  const refused = refuse(text)
  if (refused !== undefined) return { documents: [], problems: [refused] }

  const documents: TextDocument[] = []
  const budget = { values: YAML_LIMITS.values }
  try {
    for (const document of compose(text, lines)) {
      for (const error of tellingErrors(document)) add(error.pos[0], sentence(error.message))
      if (document.errors.length > 0 || document.contents === null) continue
      const reader = new Reader(document, budget, add)
      const value = reader.read()
      const start = place(document.contents.range[0])
      documents.push({ value, start, locate: (path, what) => place(reader.offsetOf(path, what ?? 'value')) })
      if (documents.length > YAML_LIMITS.documents) throw new Limit(0, `more than ${YAML_LIMITS.documents} documents`)
      if (problems.length > YAML_LIMITS.problems)
        throw new Limit(0, `more than ${YAML_LIMITS.problems} problems; the rest is not listed`)
    }
  } catch (error) {
    if (!(error instanceof Limit)) throw error
    add(error.offset, error.message)
  }
  return { documents, problems }
}

/** The errors and warnings of a document. Where a tab indents a line, the rest follows from it: the lines have no level. */
function tellingErrors({ errors, warnings }: Document.Parsed): readonly { pos: [number, number]; message: string }[] {
  const tab = errors.find((error) => error.code === 'TAB_AS_INDENT')
  return [...errors.filter((error) => tab === undefined || error.pos[0] <= tab.pos[0]), ...warnings]
}

/** A bound was reached; nothing more of this text is read. */
class Limit extends Error {
  readonly offset: number

  constructor(offset: number, message: string) {
    super(message)
    this.offset = offset
  }
}

/** What is wrong with the characters themselves. */
function refuse(text: string): TextProblem | undefined {
  if (text.length > YAML_LIMITS.bytes) {
    return { line: 1, column: 1, message: `the file is too large, expected at most ${YAML_LIMITS.bytes} bytes` }
  }
  // oxlint-disable-next-line no-control-regex -- characters that YAML 1.2 §5.1 does not allow are what this looks for
  const offset = text.search(/[\0-\x08\x0B\x0C\x0E-\x1F\x7F]/)
  if (offset < 0) return undefined
  const before = text.slice(0, offset).split('\n')
  return {
    line: before.length,
    column: (before.at(-1)?.length ?? 0) + 1,
    message: 'a control character, expected text',
  }
}

/** Documents of the text. Lexer and parser keep a stack of their own; the composer recurses, so depth is bounded before it. */
function* compose(text: string, lines: LineCounter): Generator<Document.Parsed> {
  lines.addNewLine(0)
  const parser = new Parser(lines.addNewLine)
  // Duplicate keys are found by the reader: the library's own search is quadratic.
  const composer = new Composer({ uniqueKeys: false, strict: true, prettyErrors: false, version: '1.2', merge: false })
  let tokens = 0
  let offset = 0
  for (const lexeme of new Lexer().lex(text)) {
    offset += lexeme.length
    tokens += 1
    if (tokens > YAML_LIMITS.tokens) throw new Limit(offset, 'too many tokens in one file')
    for (const token of parser.next(lexeme)) yield* composer.next(token)
    if (parser.stack.length > YAML_LIMITS.depth * 2)
      throw new Limit(offset, `nested too deeply, expected at most ${YAML_LIMITS.depth} levels`)
  }
  for (const token of parser.end()) yield* composer.next(token)
  yield* composer.end()
}

class Reader {
  readonly #document: Document.Parsed
  readonly #budget: { values: number }
  readonly #add: (offset: number, message: string) => void
  readonly #anchors = new Map<string, Node>()
  readonly #targets = new WeakMap<Node, Node>()
  readonly #open = new Set<Node>()
  readonly #pairsOf = new WeakMap<Node, ReadonlyMap<string, Pair>>()

  constructor(document: Document.Parsed, budget: { values: number }, add: (offset: number, message: string) => void) {
    this.#document = document
    this.#budget = budget
    this.#add = add
  }

  read(): unknown {
    return this.#value(this.#document.contents, 0)
  }

  #value(node: Node | null, depth: number): unknown {
    if (node === null) return null
    const offset = node.range?.[0] ?? 0
    this.#budget.values -= 1
    if (this.#budget.values < 0)
      throw new Limit(offset, `too many values, expected at most ${YAML_LIMITS.values} with aliases expanded`)
    if (depth > YAML_LIMITS.depth)
      throw new Limit(offset, `nested too deeply, expected at most ${YAML_LIMITS.depth} levels`)
    if (isAlias(node)) return this.#alias(node, node.source, depth)
    if (isScalar(node)) {
      this.#anchor(node)
      return node.value
    }
    this.#anchor(node)
    this.#open.add(node)
    const value = isMap(node)
      ? this.#map(node.items, depth)
      : isSeq(node)
        ? node.items.map((item) => this.#value(item as Node | null, depth + 1))
        : null
    this.#open.delete(node)
    return value
  }

  #anchor(node: Node & { anchor?: string | undefined }): void {
    if (node.anchor !== undefined) this.#anchors.set(node.anchor, node)
  }

  #alias(node: Node, name: string, depth: number): unknown {
    const target = this.#anchors.get(name)
    const offset = node.range?.[0] ?? 0
    if (target === undefined || this.#open.has(target)) {
      this.#add(
        offset,
        target === undefined
          ? 'an alias that has no anchor before it; a text that starts with "*" needs quotes'
          : 'an alias inside of what it stands for',
      )
      return null
    }
    this.#targets.set(node, target)
    return this.#value(target, depth + 1)
  }

  #map(items: readonly Pair[], depth: number): Record<string, unknown> {
    const value: Record<string, unknown> = {}
    const seen = new Set<string>()
    for (const pair of items) {
      const key = keyOf(pair)
      const offset = offsetOfKey(pair)
      if (key === undefined) this.#add(offset, 'a key that is not a word, expected a plain field name')
      else if (seen.has(key)) this.#add(offset, `the key "${shorten(key)}" is there twice`)
      else if (key === '__proto__') this.#add(offset, 'unknown field "__proto__"')
      else value[key] = this.#value(pair.value as Node | null, depth + 1)
      if (key !== undefined) seen.add(key)
    }
    return value
  }

  /** Offset of what `path` leads to, see `TextDocument.locate`. */
  offsetOf(path: readonly PropertyKey[], what: 'key' | 'value'): number {
    let node: Node | null = this.#document.contents
    let offset = node?.range?.[0] ?? 0
    for (const [index, step] of path.entries()) {
      node = this.#resolved(node)
      if (isMap(node)) {
        const pair = this.#pairs(node).get(String(step))
        if (pair === undefined) return offset
        offset = offsetOfKey(pair)
        node = pair.value as Node | null
      } else if (isSeq(node)) {
        const item = node.items[Number(step)] as Node | null | undefined
        if (item === undefined) return offset
        node = item
        offset = node?.range?.[0] ?? offset
      } else return offset
      const isLast = index === path.length - 1
      const isWord = isAlias(node) || (isScalar(node) && node.value !== null)
      if (isLast && what === 'value' && isWord) return node?.range?.[0] ?? offset
    }
    return offset
  }

  /** Pairs of a map by key, made once: a map may have as many problems as keys. */
  #pairs(node: YAMLMap): ReadonlyMap<string, Pair> {
    const known = this.#pairsOf.get(node)
    if (known !== undefined) return known
    const pairs = new Map<string, Pair>()
    for (const pair of node.items) {
      const key = keyOf(pair)
      if (key !== undefined && !pairs.has(key)) pairs.set(key, pair)
    }
    this.#pairsOf.set(node, pairs)
    return pairs
  }

  #resolved(node: Node | null): Node | null {
    return node !== null && isAlias(node) ? (this.#targets.get(node) ?? node) : node
  }
}

function keyOf(pair: Pair): string | undefined {
  const { key } = pair
  if (!isScalar(key)) return undefined
  return typeof key.value === 'string' || typeof key.value === 'number' || typeof key.value === 'boolean'
    ? String(key.value)
    : undefined
}

const offsetOfKey = (pair: Pair): number => (pair.key as Node | null)?.range?.[0] ?? 0

/** A name from a file, short enough for a message. */
export const shorten = (text: string): string => (text.length <= 64 ? text : `${text.slice(0, 61)}...`)

/** The library's message as a clause, without what it quotes. */
function sentence(message: string): string {
  const [first = ''] = message.split('\n')
  // What the library quotes of the text may be a secret that was written in the wrong place.
  const clean = first.replace(/: .*$| %.*$/, '').slice(0, 300)
  return clean.charAt(0).toLowerCase() + clean.slice(1)
}
