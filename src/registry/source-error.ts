export type SourceProblem =
  'missing' | 'unreadable' | 'too_large' | 'not_json' | 'invalid' | 'unreachable' | 'bad_status' | 'failed'

/** Why a source gave nothing that can be served. `detail` is in our words, for the log. */
export class SourceError extends Error {
  readonly problem: SourceProblem
  readonly detail: string
  /** Whole seconds that the source asked to be left alone for. */
  readonly retryAfterSeconds: number | undefined

  constructor(problem: SourceProblem, detail: string, cause?: unknown, retryAfterSeconds?: number) {
    super(`${problem}: ${detail}`, { cause })
    this.name = 'SourceError'
    this.problem = problem
    this.detail = detail
    this.retryAfterSeconds = retryAfterSeconds
  }
}
