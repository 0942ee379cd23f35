import { LineCounter } from 'yaml'
import { composeYaml, relevantErrors, unreadableText } from './yaml-compose.ts'
import { fullBudget, Limit, YAML_LIMITS, type Budget } from './yaml-limits.ts'
import { YamlReader } from './yaml-reader.ts'

export { fullBudget, objectBudget, YAML_LIMITS, type Budget } from './yaml-limits.ts'
export { shorten } from './yaml-reader.ts'

/** From 1, as editors count. */
export interface Place {
  readonly line: number
  readonly column: number
}

export interface TextProblem extends Place {
  readonly message: string
}

/** The same thing at another place. */
export const moved = <T extends Place>(thing: T, { line, column }: Place): T => ({ ...thing, line, column })

/** Something that is allowed but should be known, at a path of a document. */
export interface TextWarning extends TextProblem {
  readonly path: readonly PropertyKey[]
}

/** One YAML or JSON document as plain data, with the place of every part of it. */
export interface TextDocument {
  readonly value: unknown
  readonly start: Place
  /** Scalars that other readers of YAML read otherwise; empty for JSON. */
  readonly warnings: readonly TextWarning[]
  /**
   * Where a path is: of a scalar its value, of anything else its key; of something that is missing, the innermost
   * existing thing around it. `key` asks for the key in any case.
   */
  locate(path: readonly PropertyKey[], what?: 'key' | 'value'): Place
  /**
   * Where a place within the text at `path` is in the file: exact for literal block scalars (`|`), whose lines are lines of
   * the file; of other texts, the place of the key.
   */
  placeWithin(path: readonly PropertyKey[], inner: Place): Place
}

/**
 * Reads all documents of a YAML or JSON text. Duplicate keys, unknown tags, cyclic or multiplying aliases, deep nesting
 * and oversized texts are problems; work and memory are bounded by `YAML_LIMITS` whatever the text is. Merge keys (`<<`)
 * are honoured: what an object says itself wins. `budget` is shared by the texts of one file.
 */
export function readYaml(
  text: string,
  budget: Budget = fullBudget(),
): { documents: TextDocument[]; problems: TextProblem[] } {
  const lines = new LineCounter()
  const problems: TextProblem[] = []
  const place = (offset: number): Place => {
    const { line, col } = lines.linePos(offset)
    return { line: Math.max(line, 1), column: Math.max(col, 1) }
  }
  const add = (offset: number, message: string): void => {
    problems.push({ ...place(offset), message })
  }
  const refused = unreadableText(text)
  if (refused !== undefined) {
    const before = text.slice(0, refused.offset).split('\n')
    const column = (before.at(-1)?.length ?? 0) + 1
    return { documents: [], problems: [{ line: before.length, column, message: refused.message }] }
  }

  const documents: TextDocument[] = []
  try {
    for (const document of composeYaml(text, lines, budget)) {
      for (const error of relevantErrors(document)) add(error.offset, error.message)
      if (document.errors.length > 0 || document.contents === null) continue
      const warnings: TextWarning[] = []
      const reader = new YamlReader(document.contents, budget, {
        problem: add,
        warning: (offset, path, message) => void warnings.push({ ...place(offset), path, message }),
      })
      const value = reader.read()
      if (document.directives.yaml.explicit === true)
        warnings.push({
          ...place(0),
          path: [],
          message: 'a directive such as "%YAML 1.2": kubectl refuses the file; leave it out',
        })
      documents.push({
        value,
        start: place(document.contents.range[0]),
        warnings,
        locate: (path, what) => place(reader.offsetOf(path, what ?? 'value')),
        placeWithin: (path, inner) => placeWithin(reader, path, inner, place, text),
      })
      budget.documents -= 1
      if (budget.documents < 0) throw new Limit(0, `more than ${YAML_LIMITS.documents} documents`)
      if (problems.length > YAML_LIMITS.problems)
        throw new Limit(0, `more than ${YAML_LIMITS.problems} problems; the rest is not listed`)
    }
  } catch (error) {
    if (!(error instanceof Limit)) throw error
    add(error.offset, error.message)
  }
  return { documents, problems }
}

function placeWithin(
  reader: YamlReader,
  path: readonly PropertyKey[],
  inner: Place,
  place: (offset: number) => Place,
  text: string,
): Place {
  const block = reader.blockAt(path)
  if (block === undefined) return place(reader.offsetOf(path, 'key'))
  // The line after the one with `|` is the first of the text; all of its lines are indented alike.
  const line = place(block.offset).line + inner.line
  return { line, column: inner.column + indentOf(text.slice(block.offset), block.value) }
}

/** By how much the lines of a block scalar are indented; `source` begins with its header. */
function indentOf(source: string, value: string): number {
  const lines = value.split('\n')
  const first = lines.findIndex((line) => line.trim() !== '')
  const written = source.split('\n', first + 2)[first + 1]
  const bare = (line: string | undefined): number => line?.replace(/\r$/, '').length ?? 0
  return first < 0 ? 0 : Math.max(0, bare(written) - bare(lines[first]))
}
