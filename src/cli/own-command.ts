import { existsSync } from 'node:fs'
import path from 'node:path'
import { PACKAGE_ROOT } from '../core/index.ts'
import { shellQuote } from './shell-quote.ts'

/**
 * What starts this program again from the folder that it was started in, as a shell wants it: a checkout has no `extauth` on
 * the path, and npm finds the right Node there.
 */
export function ownCommand(directory: string = process.cwd()): string {
  if (!existsSync(path.join(PACKAGE_ROOT, 'src', 'main.ts'))) return 'extauth'
  if (path.resolve(directory) === PACKAGE_ROOT) return 'npm run -s extauth --'
  return `node ${shellQuote(path.join(PACKAGE_ROOT, 'bin', 'extauth.cjs'))}`
}

/** A path for a printed command: from the folder that it is run in, whole where it lies outside; quoted where a shell needs it. */
export function printedPath(file: string, directory: string = process.cwd()): string {
  const relative = path.relative(directory, file)
  return shellQuote(relative.startsWith('..') ? path.resolve(directory, file) : relative || '.')
}
