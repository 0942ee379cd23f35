import { ConfigError } from './config-error.ts'

const RETRY_MS = 5_000

/** Retries a reload that failed because of a file: a fixed file outside the watched paths causes no event. */
export interface FileRetry {
  succeeded(): void
  /** Schedules a retry if one may help. Returns true when the problems differ from those of the previous attempt. */
  failed(error: unknown, problems: readonly string[]): boolean
  close(): void
}

/** Calls `retry` after `retryMs` (default 5 s) when the failure was about files. */
export function createFileRetry(retryMs: number = RETRY_MS, retry: () => void): FileRetry {
  let timer: NodeJS.Timeout | undefined
  let reported = ''
  let isClosed = false
  const cancel = (): void => {
    clearTimeout(timer)
    timer = undefined
  }
  return {
    succeeded() {
      cancel()
      reported = ''
    },
    failed(error, problems) {
      cancel()
      const text = problems.join('\n')
      const isNews = text !== reported
      reported = text
      if (error instanceof ConfigError && error.isAboutFiles && !isClosed) {
        timer = setTimeout(retry, retryMs)
        timer.unref()
      }
      return isNews
    },
    close() {
      isClosed = true
      cancel()
    },
  }
}
