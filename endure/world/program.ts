import { execFileSync } from 'node:child_process'
import { cpSync, readFileSync, symlinkSync } from 'node:fs'
import path from 'node:path'

/** The tested program, as it was when the first run began, regardless of later changes. */
export interface Program {
  /** Arguments of Node. */
  readonly bin: string
  /** Version and commit. */
  readonly version: string
}

const ROOT = path.join(import.meta.dirname, '../..')
/** As in an installed package, so that nothing looks for sources. */
const PARTS = ['bin', 'dist', 'config', 'package.json']

/** Copies the built program into a folder. */
export function copyProgram(folder: string): Program {
  for (const part of PARTS) cpSync(path.join(ROOT, part), path.join(folder, part), { recursive: true })
  symlinkSync(path.join(ROOT, 'node_modules'), path.join(folder, 'node_modules'))
  const { version } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8')) as { version: string }
  return { bin: path.join(folder, 'bin/extauth.cjs'), version: [version, commit()].join(' ').trim() }
}

/** Empty where the sources did not come with their history. */
function commit(): string {
  try {
    const ask = (...args: readonly string[]): string =>
      execFileSync('git', args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
    const name = ask('rev-parse', '--short=10', 'HEAD')
    const isChanged = ask('status', '--porcelain', '--untracked-files=no') !== ''
    return `(${name}${isChanged ? ', changed' : ''})`
  } catch {
    return ''
  }
}
