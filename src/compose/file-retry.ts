import { ConfigError } from './config-error.ts'

const RETRY_MS = 5_000

/** When a reload that failed for the sake of a file is tried again: nobody tells when such a file is mended. */
export interface FileRetry {
  succeeded(): void
  /** Plans another try if one may help; true when these problems are others than those of the try before. */
  failed(error: unknown, problems: readonly string[]): boolean
  close(): void
}

/** Calls `retry` some time (default 5 s) after a failure that was about files. */
export function createFileRetry(retryMs: number = RETRY_MS, retry: () => void): FileRetry {
  let timer: NodeJS.Timeout | undefined
  let told = ''
  let isClosed = false
  const cancel = (): void => {
    clearTimeout(timer)
    timer = undefined
  }
  return {
    succeeded() {
      cancel()
      told = ''
    },
    failed(error, problems) {
      cancel()
      const text = problems.join('\n')
      const isNews = text !== told
      told = text
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
