import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { embeddedFiles, IS_EXECUTABLE, PACKAGE_ROOT, readProgramFile } from '../core/index.ts'

const FOLDER = 'config/lab'

let unpacked: string | undefined

/**
 * The folder with the configuration that the lab runs, and the source of the secrets that `init` writes. The single
 * executable unpacks it into the user's cache directory.
 */
export const labConfig = (): string =>
  IS_EXECUTABLE ? (unpacked ??= unpack(cacheHome())) : path.join(PACKAGE_ROOT, FOLDER)

const cacheHome = (): string => process.env['XDG_CACHE_HOME'] || path.join(os.homedir(), '.cache')

function unpack(cache: string): string {
  const { version } = JSON.parse(readProgramFile('package.json').toString()) as { version: string }
  const root = path.join(cache, 'extauth', version)
  for (const name of embeddedFiles(FOLDER)) {
    const file = path.join(root, name)
    const bytes = readProgramFile(name)
    mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 })
    // A running lab watches these files: unchanged ones are not written again.
    if (!isSame(file, bytes)) writeFileSync(file, bytes, { mode: 0o600 })
  }
  return path.join(root, FOLDER)
}

function isSame(file: string, bytes: Buffer): boolean {
  try {
    return readFileSync(file).equals(bytes)
  } catch {
    return false
  }
}
