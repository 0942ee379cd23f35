export type SourceProblem =
  'missing' | 'unreadable' | 'too_large' | 'not_json' | 'invalid' | 'unreachable' | 'bad_status' | 'failed'

/** Why a source has no valid data. `detail` is our own text, for the log. */
export class SourceError extends Error {
  readonly problem: SourceProblem
  readonly detail: string
  /** Retry-After of the source in seconds. */
  readonly retryAfterSeconds: number | undefined

  constructor(problem: SourceProblem, detail: string, cause?: unknown, retryAfterSeconds?: number) {
    super(`${problem}: ${detail}`, { cause })
    this.name = 'SourceError'
    this.problem = problem
    this.detail = detail
    this.retryAfterSeconds = retryAfterSeconds
  }
}
