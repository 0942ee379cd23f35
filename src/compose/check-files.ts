import path from 'node:path'
import type { X509Certificate } from 'node:crypto'
import { type Clock, denied, deniedClause, headerSecretProblem } from '../core/index.ts'
import { ContentProblem, FileError, readBounded, readCertificates, readPrivateKey } from '../files/index.ts'
import { isClientKey } from '../oauth/index.ts'
import { type Content, isHeaderForm } from '../fields/index.ts'
import type { NamedFile, NamedSecret, Problem } from '../load/index.ts'

// As much as the readers of these files take.
const MAX_TEXT_BYTES = 64 * 1024
const MAX_PEM_BYTES = 1024 * 1024

/** What a token in a file may consist of (RFC 6750 §2.1); anything else would end up inside a header. */
const TOKEN = /^[\w\-.~+/]+=*$/

const EXPECTED: Readonly<Record<Content, string>> = {
  text: 'a file with one secret in it',
  'header value': 'a file with the value of a header on one line',
  'bearer token': 'a file with one token on one line',
  token: 'a file with one token in it',
  certificates: 'the certificates of authorities in PEM',
  'certificate chain': 'a certificate in PEM',
  'key of certificate': 'a private key in PEM',
  'client key': 'a private key in PEM or as a JWK',
  'registry file': 'a JSON file of servers',
  'registry directory': 'a directory of JSON files',
  'secrets directory': 'a directory',
}

export interface FileFindings {
  /** What keeps a process from starting. */
  readonly problems: Problem[]
  /** What it starts with, but should be known. */
  readonly warnings: Problem[]
}

/** Everything that a configuration names beside its documents. */
export interface NamedThings {
  readonly files: readonly NamedFile[]
  readonly secrets: readonly NamedSecret[]
}

/**
 * Looks whether the files that a configuration names are there and hold what they should: certificates, keys that belong to
 * them, tokens. A secret may come later (decisions §6), so one that is missing is a warning; one that is there and is no
 * certificate or key where one has to be is a problem. Nothing of what is read is told.
 */
export async function checkFiles(
  { files, secrets }: NamedThings,
  secretsDirectory: string,
  clock: Clock,
): Promise<FileFindings> {
  const findings: FileFindings = { problems: [], warnings: [] }
  for (const file of files) checkFile(file, findings, clock)
  for (const secret of secrets) await checkSecret(secret, secretsDirectory, findings)
  return findings
}

function checkFile({ at, holds, path: name, certificate }: NamedFile, findings: FileFindings, clock: Clock): void {
  try {
    switch (holds) {
      // What these lead to is awaited while the process runs.
      case 'registry file':
      case 'registry directory':
      case 'secrets directory':
        return
      case 'text':
      case 'token':
        checkText(readBounded(name, MAX_TEXT_BYTES), holds)
        return
      case 'key of certificate':
        checkKey(readBounded(name, MAX_PEM_BYTES), name, certificate)
        return
      default: {
        const [first] = readCertificates(readBounded(name, MAX_PEM_BYTES))
        const isExpired = first !== undefined && first.validToDate.getTime() <= clock.now()
        if (isExpired && holds === 'certificate chain')
          findings.warnings.push({ ...at, message: `the certificate in ${name} has expired` })
      }
    }
  } catch (error) {
    findings.problems.push({ ...at, message: sentenceOf(error, name, holds) })
  }
}

function checkText(content: Buffer, holds: 'text' | 'token'): void {
  const text = content.toString('utf8').replace(/\r?\n$/, '')
  if (text.trim() === '') throw new ContentProblem(`it is blank, expected ${EXPECTED[holds]}`)
  if (holds === 'token' && !TOKEN.test(text))
    throw new ContentProblem('it holds no bearer token, expected one token on one line (RFC 6750 §2.1)')
}

/** A certificate that can't be read is a problem of its own, from which nothing follows for the key. */
function checkKey(content: Buffer, name: string, certificate: string | undefined): void {
  const key = readPrivateKey(content)
  if (certificate === undefined) return
  let own: X509Certificate | undefined
  try {
    own = readCertificates(readBounded(certificate, MAX_PEM_BYTES))[0]
  } catch {
    return
  }
  if (own?.checkPrivateKey(key) === false)
    throw new ContentProblem(
      `it is the key of another certificate: ${certificate} and ${name}; both must be PEM and belong together`,
    )
}

async function checkSecret(
  { at, holds, label }: NamedSecret,
  directory: string,
  { problems, warnings }: FileFindings,
): Promise<void> {
  const name = path.join(directory, label)
  try {
    const content = readBounded(name, MAX_PEM_BYTES, directory)
    if (content.toString('utf8').trim() === '')
      warnings.push({ ...at, message: `the secret ${label} in ${directory} is blank; ${WAITING}` })
    else if (holds === 'certificates') readCertificates(content)
    else if (isHeaderForm(holds)) {
      const problem = headerSecretProblem(content.toString('utf8').replace(/\r?\n$/, ''), holds)
      if (problem !== undefined)
        warnings.push({
          ...at,
          message: `the secret ${name} cannot be used: ${problem}; expected ${EXPECTED[holds]}; what needs it is answered with config_error`,
        })
    } else if (holds === 'client key' && !(await isClientKey(content.toString('utf8'))))
      throw new ContentProblem(`it is no private key that can sign, expected ${EXPECTED[holds]}`)
  } catch (error) {
    if (error instanceof ContentProblem) problems.push({ ...at, message: sentenceOf(error, name, holds) })
    else {
      const what = error instanceof FileError && error.problem === 'missing' ? 'is not there' : whyUnreadable(name)
      warnings.push({ ...at, message: `the secret ${label} ${what}, expected ${name}; ${WAITING}` })
    }
  }
}

const WAITING = 'what needs it is answered with secret_unavailable until it has a value'

function sentenceOf(error: unknown, name: string, holds: Content): string {
  if (error instanceof ContentProblem) return `${name} cannot be used: ${error.message}`
  const expected = `expected ${EXPECTED[holds]}`
  switch (error instanceof FileError ? error.problem : undefined) {
    case 'missing':
      return `there is no file ${name}; ${expected}, its path absolute or relative to the file that names it`
    case 'not_a_file':
      return `${name} is not a regular file; ${expected}`
    case 'too_large':
      return `${name} is too large; ${expected}`
    default:
      return `${name} ${whyUnreadable(name)}`
  }
}

function whyUnreadable(name: string): string {
  const why = denied(name)
  return why === undefined ? 'cannot be read' : `cannot be read (${why.errno}: ${deniedClause(why)})`
}
