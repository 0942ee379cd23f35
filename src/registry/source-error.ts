export type SourceProblem =
  'missing' | 'unreadable' | 'too_large' | 'not_json' | 'invalid' | 'unreachable' | 'bad_status' | 'failed'

/** Why a source gave nothing that can be served. `detail` is in our words, for the log. */
export class SourceError extends Error {
  readonly problem: SourceProblem
  readonly detail: string

  constructor(problem: SourceProblem, detail: string, cause?: unknown) {
    super(`${problem}: ${detail}`, { cause })
    this.name = 'SourceError'
    this.problem = problem
    this.detail = detail
  }
}
