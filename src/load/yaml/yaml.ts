import { LineCounter } from 'yaml'
import { composeYaml, relevantErrors, unreadableText } from './yaml-compose.ts'
import { fullBudget, Limit, YAML_LIMITS, type Budget } from './yaml-limits.ts'
import { YamlReader } from './yaml-reader.ts'

export { fullBudget, objectBudget, YAML_LIMITS, type Budget } from './yaml-limits.ts'
export { shorten } from './yaml-reader.ts'

/** Counted from 1, as in editors. */
export interface Place {
  readonly line: number
  readonly column: number
}

export interface TextProblem extends Place {
  readonly message: string
}

/** The same thing at a different location. */
export const moved = <T extends Place>(thing: T, { line, column }: Place): T => ({ ...thing, line, column })

/** An allowed but questionable value at a path of a document. */
export interface TextWarning extends TextProblem {
  readonly path: readonly PropertyKey[]
}

/** One YAML or JSON document as plain data, with the location of every part. */
export interface TextDocument {
  readonly value: unknown
  readonly start: Place
  /** Scalars that other YAML readers parse differently; empty for JSON. */
  readonly warnings: readonly TextWarning[]
  /**
   * The location of a path: the value of a scalar, the key of anything else; for a missing part, the innermost
   * existing parent. `key` always selects the key.
   */
  locate(path: readonly PropertyKey[], what?: 'key' | 'value'): Place
  /**
   * The location in the file of `inner` within the text at `path`: exact for literal block scalars (`|`), whose lines
   * are lines of the file; the key for other texts.
   */
  placeWithin(path: readonly PropertyKey[], inner: Place): Place
}

/**
 * Parses all documents of a YAML or JSON text. Duplicate keys, unknown tags, cyclic or multiplying aliases, deep
 * nesting and oversized texts are problems; work and memory are limited by `YAML_LIMITS`. Merge keys (`<<`) are
 * supported: an object's own fields win. `budget` is shared by the texts of one file.
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
  // The text starts on the line after `|`; its lines share one indentation.
  const line = place(block.offset).line + inner.line
  return { line, column: inner.column + indentOf(text.slice(block.offset), block.value) }
}

/** The indentation of a block scalar; `source` begins with its header. */
function indentOf(source: string, value: string): number {
  const lines = value.split('\n')
  const first = lines.findIndex((line) => line.trim() !== '')
  const written = source.split('\n', first + 2)[first + 1]
  const bare = (line: string | undefined): number => line?.replace(/\r$/, '').length ?? 0
  return first < 0 ? 0 : Math.max(0, bare(written) - bare(lines[first]))
}
