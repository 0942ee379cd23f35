import { existsSync } from 'node:fs'
import path from 'node:path'
import { IS_EXECUTABLE, PACKAGE_ROOT } from '../core/index.ts'
import { shellQuote } from './shell-quote.ts'

/**
 * Returns the shell command that runs this program again from `directory`. In a checkout, `extauth` is not on the path
 * and npm finds the right Node.
 */
export function ownCommand(directory: string = process.cwd()): string {
  if (IS_EXECUTABLE) return shellQuote(process.execPath)
  if (!existsSync(path.join(PACKAGE_ROOT, 'src', 'main.ts'))) return 'extauth'
  if (path.resolve(directory) === PACKAGE_ROOT) return 'npm run -s extauth --'
  return `node ${shellQuote(path.join(PACKAGE_ROOT, 'bin', 'extauth.cjs'))}`
}

/** Quotes a path for a printed command: relative to `directory`, or absolute if outside. */
export function printedPath(file: string, directory: string = process.cwd()): string {
  const relative = path.relative(directory, file)
  return shellQuote(relative.startsWith('..') ? path.resolve(directory, file) : relative || '.')
}
