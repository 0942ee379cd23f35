import { statSync } from 'node:fs'
import path from 'node:path'
import type { EpochMs } from '../../core/index.ts'
import { type FileToJudge, type FileVerdict, checkNamedFile } from '../../compose/index.ts'
import { FileError, readBounded } from '../../files/index.ts'
import { about, type CheckName, type CheckResult } from './result.ts'

const MAX_BYTES = 1024 * 1024

const NAMES: Partial<Readonly<Record<FileToJudge['holds'], CheckName>>> = {
  certificates: 'certificate',
  'certificate chain': 'certificate',
  'key of certificate': 'certificate',
}

/** Tests a configured file, with the messages of `validate`. `what` is its purpose. */
export const checkFile = (file: FileToJudge, what: string, nowMs: EpochMs): CheckResult[] => [
  lineOf(about(NAMES[file.holds] ?? 'file', `${what} ${file.path}`), checkNamedFile(file, nowMs)),
  ...checkPermissions(file.path),
]

/** Tests a certificate and its key. */
export const checkPair = (certFile: string, keyFile: string, what: string, nowMs: EpochMs): CheckResult[] => [
  ...checkFile({ holds: 'certificate chain', path: certFile }, `${what} certificate`, nowMs),
  ...checkFile({ holds: 'key of certificate', path: keyFile, certificate: certFile }, `${what} key`, nowMs),
]

/** Renders a finding as a line. The process may start with it, but requests that need the file fail. */
export function lineOf(line: ReturnType<typeof about>, { level, message, remedy }: FileVerdict): CheckResult {
  if (level === 'fine') return line.ok(message)
  return level === 'remark' || level === 'doubtful' ? line.warning(message, remedy) : line.failed(message, remedy)
}

/** Content of a file with its own line. Undefined if unreadable. */
export function readable(file: string): Buffer | undefined {
  try {
    return readBounded(file, MAX_BYTES)
  } catch (error) {
    if (error instanceof FileError) return undefined
    throw error
  }
}

/** Reports a file or parent directory that is writable by all users. */
export function checkPermissions(file: string): CheckResult[] {
  const line = about('permissions', file)
  const isOpen = (name: string): boolean => {
    const { mode } = statSync(name)
    // In a directory with the sticky bit, only the owner can replace a file.
    return (mode & 0o002) !== 0 && (mode & 0o1000) === 0
  }
  try {
    if (isOpen(file)) return [line.failed('world-writable', `chmod o-w ${file}`)]
    const directory = path.dirname(file)
    if (isOpen(directory))
      return [line.failed(`replaceable by all users: ${directory} is world-writable`, `chmod o-w ${directory}`)]
  } catch {
    // An unreadable file has been reported already.
  }
  return []
}
