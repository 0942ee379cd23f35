import { type Log, Secret } from '../core/index.ts'
import { openWatchedFile } from '../files/index.ts'

const MAX_TOKEN_FILE_BYTES = 64 * 1024

/** The bearer of `admin.tokenFile`, read again when the file changes; undefined where there is no such file configured. */
export function openAdminToken(
  path: string | undefined,
  stack: AsyncDisposableStack,
  log: Log,
): (() => Secret | undefined) | undefined {
  if (path === undefined) return undefined
  const file = stack.adopt(
    openWatchedFile(path, {
      maxBytes: MAX_TOKEN_FILE_BYTES,
      onProblem: (reason) => log.warn({ file: path, reason }, 'admin.tokenFile cannot be read'),
    }),
    (opened) => opened.close(),
  )
  return () => {
    const text = file.read()?.toString('utf8').trim()
    return text === undefined || text === '' ? undefined : new Secret(text)
  }
}
