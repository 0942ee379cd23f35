import { statSync } from 'node:fs'
import path from 'node:path'
import { type FileToJudge, type FileVerdict, judgeFile } from '../../compose/index.ts'
import { FileError, readBounded } from '../../files/index.ts'
import { about, type CheckName, type CheckResult } from './result.ts'

const MAX_BYTES = 1024 * 1024

const NAMES: Partial<Readonly<Record<FileToJudge['holds'], CheckName>>> = {
  certificates: 'certificate',
  'certificate chain': 'certificate',
  'key of certificate': 'certificate',
}

/** A file that the configuration names, in the words of `validate`; `what` says what it is for. */
export const checkFile = (file: FileToJudge, what: string, nowMs: number): CheckResult[] => [
  lineOf(about(NAMES[file.holds] ?? 'file', `${what} ${file.path}`), judgeFile(file, nowMs)),
  ...checkPermissions(file.path),
]

/** A certificate and its key. */
export const checkPair = (certFile: string, keyFile: string, what: string, nowMs: number): CheckResult[] => [
  ...checkFile({ holds: 'certificate chain', path: certFile }, `${what} certificate`, nowMs),
  ...checkFile({ holds: 'key of certificate', path: keyFile, certificate: certFile }, `${what} key`, nowMs),
]

/** What was found as a line; a process may start with it, but what needs it fails all the same. */
export function lineOf(line: ReturnType<typeof about>, { level, message, remedy }: FileVerdict): CheckResult {
  if (level === 'fine') return line.ok(message)
  return level === 'remark' || level === 'doubtful' ? line.warning(message, remedy) : line.failed(message, remedy)
}

/** The content of a file that has a line of its own; undefined where it can't be read. */
export function readable(file: string): Buffer | undefined {
  try {
    return readBounded(file, MAX_BYTES)
  } catch (error) {
    if (error instanceof FileError) return undefined
    throw error
  }
}

/** Only what is wrong: a file, or the directory that it lies in, that everybody on this machine may change. */
export function checkPermissions(file: string): CheckResult[] {
  const line = about('permissions', file)
  const isOpen = (name: string): boolean => {
    const { mode } = statSync(name)
    // In a directory with the sticky bit only the owner of a file can replace it.
    return (mode & 0o002) !== 0 && (mode & 0o1000) === 0
  }
  try {
    if (isOpen(file)) return [line.failed('everybody on this machine can write to it', `chmod o-w ${file}`)]
    const directory = path.dirname(file)
    if (isOpen(directory))
      return [line.failed(`everybody on this machine can replace it: ${directory}`, `chmod o-w ${directory}`)]
  } catch {
    // That it can't be read was told already.
  }
  return []
}
