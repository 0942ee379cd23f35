import type { z } from 'zod'
import { explainIssues } from './explain-issue.ts'
import type { Loading } from './loaded.ts'
import { namesIn } from './named-files.ts'
import { withoutNulls } from '../../fields/index.ts'
import { problemMaker, type Located } from './problem.ts'
import { plainHttpIn } from './warnings.ts'
import { moved, type TextDocument } from '../yaml/yaml.ts'
import { YAML_LIMITS, type Budget } from '../yaml/yaml-limits.ts'

/** What the documents of one file have in common. */
export interface Context {
  readonly apiGroup: string
  /** What is left of the bounds of the file. */
  readonly budget: Budget
  /** Is it one of a few documents? zod would write code for each schema, which is slower than checking a few without. Default false. */
  readonly isOfFew?: boolean
}

/** One text document on its way into `loading`. */
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

  /** Tells of scalars below `prefix` that others read otherwise. */
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

  /** The value by its schema, or undefined when there are problems (which are added). */
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
