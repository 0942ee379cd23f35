import type { X509Certificate } from 'node:crypto'
import { statSync } from 'node:fs'
import path from 'node:path'
import { createSecureContext } from 'node:tls'
import { ContentProblem, FileError, readBounded, readCertificates, readPrivateKey } from '../../files/index.ts'
import { about, type CheckResult } from './result.ts'

const MAX_BYTES = 1024 * 1024
const DAY_MS = 86_400_000
/** So long before its end a certificate is told about. */
const SOON_MS = 14 * DAY_MS

const PROBLEMS: Readonly<Record<string, readonly [string, string]>> = {
  missing: ['there is no such file', 'Create it, or correct the path in the configuration.'],
  unreadable: ['it cannot be read by this user', 'Give the user of the process the right to read it.'],
  not_a_file: ['it is no regular file', 'Put a file there.'],
  too_large: ['it is larger than 1 MiB', 'Keep only what is needed in it.'],
  outside: ['it is a link that leads out of the secrets directory', 'Put the file into the directory.'],
  refused: ['it is empty or no text', 'Write the value into it, in UTF-8.'],
}

/** What a problem of a file means, and what to do. */
export const fileProblem = (problem: string): readonly [detail: string, remedy: string] =>
  PROBLEMS[problem] ?? [`it cannot be used (${problem})`, 'Look at the file.']

/** A file that is to be readable; `what` says what it is for. */
export function checkFile(file: string, what: string): CheckResult[] {
  const line = about('file', `${what} ${file}`)
  const content = read(file)
  if (typeof content === 'string') return [line.failed(...fileProblem(content))]
  if (content.toString('utf8').trim() === '') return [line.failed(...fileProblem('refused'))]
  return [line.ok('readable'), ...checkPermissions(file)]
}

/** A file with certificates that are trusted or shown. */
export function checkCertificates(file: string, what: string, nowMs: number): CheckResult[] {
  const line = about('certificate', `${what} ${file}`)
  const content = read(file)
  if (typeof content === 'string') return [line.failed(...fileProblem(content))]
  return [judgeCertificates(line, content, nowMs), ...checkPermissions(file)]
}

/** Certificates in a text that came from elsewhere than a file. */
export const checkCertificateText = (content: Buffer, what: string, nowMs: number): CheckResult =>
  judgeCertificates(about('certificate', what), content, nowMs)

/** A certificate and its key: both there, fitting together, and valid now. */
export function checkPair(certFile: string, keyFile: string, what: string, nowMs: number): CheckResult[] {
  const lines = checkCertificates(certFile, `${what} certificate`, nowMs)
  const line = about('certificate', `${what} key ${keyFile}`)
  const key = read(keyFile)
  if (typeof key === 'string') return [...lines, line.failed(...fileProblem(key))]
  try {
    readPrivateKey(key)
  } catch (error) {
    return [...lines, line.failed(problemOf(error), 'Write the key as PEM, without a passphrase.')]
  }
  const cert = read(certFile)
  try {
    if (typeof cert !== 'string') createSecureContext({ cert, key })
  } catch {
    return [
      ...lines,
      line.failed('it does not belong to the certificate', 'Put certificate and key of one pair there.'),
    ]
  }
  return [...lines, line.ok('belongs to the certificate'), ...checkPermissions(keyFile)]
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

/** Until when, in words for people. */
export const until = (ms: number): string => (Number.isNaN(ms) ? '(no date)' : new Date(ms).toISOString().slice(0, 10))

/** Whether a time is over, or will be soon. */
export function expiryOf(validToMs: number, nowMs: number): 'expired' | 'soon' | 'fine' {
  if (!(validToMs > nowMs)) return 'expired'
  return validToMs < nowMs + SOON_MS ? 'soon' : 'fine'
}

const problemOf = (error: unknown): string => (error instanceof ContentProblem ? error.message : 'it cannot be read')

function judgeCertificates(line: ReturnType<typeof about>, content: Buffer, nowMs: number): CheckResult {
  let certificates: readonly X509Certificate[]
  try {
    certificates = readCertificates(content)
  } catch (error) {
    return line.failed(problemOf(error), 'Write it as PEM.')
  }
  const [first] = certificates
  if (first === undefined) return line.failed('it holds no certificate', 'Write it as PEM.')
  const states = certificates.map(({ validToDate }) => expiryOf(validToDate.getTime(), nowMs))
  const expired = states.filter((state) => state === 'expired').length
  // The first is the one that is shown; of authorities, any may be the one that counts.
  const ends = until(Math.min(...certificates.map(({ validToDate }) => validToDate.getTime())))
  const many = certificates.length === 1 ? '' : ` (the first of ${certificates.length})`
  if (states[0] === 'expired' || expired === certificates.length)
    return line.failed(`it ended on ${until(first.validToDate.getTime())}`, 'Renew it.')
  if (first.validFromDate.getTime() > nowMs)
    return line.failed(`it begins on ${until(first.validFromDate.getTime())} only`, 'Wait, or look at the clock.')
  if (expired > 0) return line.warning(`${expired} of ${certificates.length} have ended`, 'Take them out.')
  if (states.includes('soon')) return line.warning(`it ends on ${ends}${many}`, 'Renew it before that.')
  return line.ok(`valid until ${ends}${many}`)
}

function read(file: string): Buffer | string {
  try {
    return readBounded(file, MAX_BYTES)
  } catch (error) {
    return error instanceof FileError ? error.problem : 'unreadable'
  }
}
