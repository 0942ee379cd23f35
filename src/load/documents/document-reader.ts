import type { z } from 'zod'
import { explainIssues } from './explain-issue.ts'
import type { Loading } from './loaded.ts'
import { namesIn } from './named-files.ts'
import { withoutNulls } from '../../fields/index.ts'
import { problemMaker, type Located } from './problem.ts'
import { plainHttpIn } from './warnings.ts'
import { moved, type TextDocument } from '../yaml/yaml.ts'
import { YAML_LIMITS, type Budget } from '../yaml/yaml-limits.ts'

/** Context shared by the documents of one file. */
export interface Context {
  readonly apiGroup: string
  /** The remaining limits of the file. */
  readonly budget: Budget
  /** Whether there are few documents: then zod does not compile the schema, which is faster. Default: false. */
  readonly isOfFew?: boolean
}

/** Reads one text document into `loading`. */
export class Reader {
  readonly loading: Loading
  readonly file: string
  readonly text: TextDocument
  readonly context: Context

  constructor(loading: Loading, file: string, text: TextDocument, context: Context) {
    this.loading = loading
    this.file = file
    this.text = text
    this.context = context
  }

  /** Warns about scalars below `prefix` that other YAML readers read differently. */
  warnAboutScalars(prefix: readonly PropertyKey[], place: Located<unknown>): void {
    for (const warning of this.text.warnings) {
      const { path, message } = warning
      if (!prefix.every((step, index) => path[index] === step)) continue
      this.loading.warnings.push(moved(place.problem(path.slice(prefix.length), message), warning))
    }
  }

  located<T>(document: T, prefix: readonly PropertyKey[], kind: string, name: string): Located<T> {
    const { line } = prefix.length === 0 ? this.text.start : this.text.locate(prefix)
    return { document, file: this.file, line, problem: problemMaker(this.file, this.text, prefix, kind, name) }
  }

  /** The parsed value, or undefined if there are problems, which are added. */
  check<S extends z.ZodType>(schema: S, value: unknown, place: Located<unknown>): z.output<S> | undefined {
    const written = withoutNulls(schema, value)
    const result = schema.safeParse(written, { jitless: this.context.isOfFew ?? false })
    if (result.success) {
      const { files, secrets } = namesIn(schema, written, place)
      this.loading.namedFiles.push(...files)
      this.loading.namedSecrets.push(...secrets)
      return result.data
    }
    const most = Math.max(0, YAML_LIMITS.problems - this.loading.problems.length)
    for (const finding of explainIssues(result.error.issues, schema, value, most)) {
      this.loading.problems.push(place.problem(finding.path, finding.message, { at: finding.at }))
    }
    const left = Math.max(0, YAML_LIMITS.problems - this.loading.problems.length)
    this.loading.problems.push(...plainHttpIn(place, value).slice(0, left))
    return undefined
  }
}
