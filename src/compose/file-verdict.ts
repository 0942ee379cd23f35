import { isUtf8 } from 'node:buffer'
import path from 'node:path'
import type { X509Certificate } from 'node:crypto'
import { type EpochMs, denied, deniedClause, headerSecretProblem, secretFormatWarning } from '../core/index.ts'
import { type Content, isHeaderForm } from '../fields/index.ts'
import {
  ContentProblem,
  dayOf,
  expiryOf,
  FileError,
  type FileProblem,
  readBounded,
  readCertificates,
  readPrivateKey,
} from '../files/index.ts'
import { clientKeyProblem } from '../oauth/index.ts'

/** Validation result of a file or secret, with the wording of `validate`, start and `check`. It never contains the content. */
export interface FileVerdict {
  /**
   * `refused`: prevents a start. `unusable`: the process starts, and whatever needs this fails. `doubtful`: probably a mistake.
   * `remark`: works today.
   */
  readonly level: 'refused' | 'unusable' | 'doubtful' | 'remark' | 'fine'
  readonly message: string
  /** The effect on requests, where the message does not say it. */
  readonly consequence?: string
  /** The change that fixes it; empty for `fine`. */
  readonly remedy: string
}

/** A file that a configuration references. */
export interface FileToJudge {
  readonly holds: Content
  readonly path: string
  /** The certificate that must match a key. */
  readonly certificate?: string | undefined
}

/** A secret that a configuration references; `label` is `<name>/<key>`. */
export interface SecretToJudge {
  readonly holds: Content
  readonly label: string
  /** Signature algorithm of a client key. Default: the algorithm of the key. */
  readonly algorithm?: string | undefined
}

// The same limits as in the readers of these files.
const MAX_TEXT_BYTES = 64 * 1024
const MAX_PEM_BYTES = 1024 * 1024

/** Characters of a bearer token (RFC 6750 §2.1): other characters must not reach a header. */
const TOKEN = /^[\w\-.~+/]+=*$/

const EXPECTED: Readonly<Record<Content, string>> = {
  text: 'a file with one secret in it',
  bytes: 'a file with one secret in it',
  'header value': 'a file with the value of a header on one line',
  'bearer token': 'a file with one token on one line',
  token: 'a file with one token in it',
  certificates: 'CA certificates in PEM',
  'certificate chain': 'a certificate in PEM',
  'key of certificate': 'a private key in PEM',
  'client key': 'a private key in PEM or as a JWK',
  'registry file': 'a JSON file of servers',
  'registry directory': 'a directory of JSON files',
  'secrets directory': 'a directory',
  'own directory': 'a directory',
}

const UNREADABLE: Readonly<Record<FileProblem, readonly [clause: string, remedy: string]>> = {
  missing: ['does not exist', 'Create it, or correct the reference to it.'],
  unreadable: ['cannot be read', 'Give the user of the process read permission.'],
  not_a_file: ['is not a regular file', 'Put a regular file there.'],
  too_large: ['is too large', 'Remove unneeded content.'],
  outside: ['is a link to a file outside the secrets directory', 'Put the file itself into the directory.'],
}

const WAITING = 'requests that need it fail with secret_unavailable until it has a value'
const FINE: FileVerdict = { level: 'fine', message: 'readable', remedy: '' }

/** Message and consequence in one sentence. */
export const verdictSentence = ({ message, consequence }: FileVerdict): string =>
  consequence === undefined ? message : `${message}; ${consequence}`

/** Validates that a file exists and has the expected content. */
export function checkNamedFile({ holds, path: name, certificate }: FileToJudge, nowMs: EpochMs): FileVerdict {
  try {
    switch (holds) {
      // These may appear while the process runs.
      case 'registry file':
      case 'registry directory':
      case 'secrets directory':
      case 'own directory':
        return FINE
      case 'certificates':
      case 'certificate chain':
        return judgeValidity(readCertificates(readBounded(name, MAX_PEM_BYTES)), name, holds, nowMs)
      case 'key of certificate':
        return judgeKey(readBounded(name, MAX_PEM_BYTES), name, certificate)
      default:
        return judgeText(readBounded(name, MAX_TEXT_BYTES), holds)
    }
  } catch (error) {
    if (error instanceof ContentProblem) return refused(name, error, holds)
    const problem = error instanceof FileError ? error.problem : 'unreadable'
    const [, remedy] = UNREADABLE[problem]
    return { level: 'refused', message: fileSentence(name, problem, holds), remedy }
  }
}

/**
 * Validates a secret. A missing secret may appear later (decisions §6) and does not prevent a start. An existing secret
 * with an invalid certificate or key does.
 */
export async function judgeSecret(
  { holds, label, algorithm }: SecretToJudge,
  directory: string,
  nowMs: EpochMs,
): Promise<FileVerdict> {
  const name = path.join(directory, label)
  try {
    const content = readBounded(name, MAX_PEM_BYTES, directory)
    if (holds !== 'bytes' && !isUtf8(content))
      return unusable(`the secret ${label} in ${directory} is not UTF-8 text`, WAITING, holds)
    const text = content.toString('utf8').replace(/\r?\n$/, '')
    if (text.trim() === '') return unusable(`the secret ${label} in ${directory} is blank`, WAITING, holds)
    if (holds === 'certificates' || holds === 'certificate chain')
      return judgeValidity(readCertificates(content), name, holds, nowMs)
    if (holds === 'key of certificate') readPrivateKey(content)
    const problem = isHeaderForm(holds) ? headerSecretProblem(text, holds) : undefined
    if (problem !== undefined)
      return unusable(
        `the secret ${name} cannot be used: ${problem}; expected ${EXPECTED[holds]}`,
        'requests that need it fail with config_error',
        holds,
      )
    const noKey = holds === 'client key' ? await clientKeyProblem(text, algorithm) : undefined
    if (noKey !== undefined) throw new ContentProblem(`${noKey}, expected ${EXPECTED[holds]}`)
    return holds === 'text' ? judgeOddity(text, name) : FINE
  } catch (error) {
    if (error instanceof ContentProblem) return refused(name, error, holds)
    const problem = error instanceof FileError ? error.problem : 'unreadable'
    const [, remedy] = UNREADABLE[problem]
    const message = `the secret ${label} ${clauseOf(problem, name)}, expected ${name}`
    return { level: 'unusable', message, consequence: WAITING, remedy }
  }
}

function judgeOddity(text: string, name: string): FileVerdict {
  const oddity = secretFormatWarning(text)
  if (oddity === undefined) return FINE
  return {
    level: 'doubtful',
    message: `the secret ${name} is probably wrong: ${oddity}`,
    consequence: 'it is used unchanged',
    remedy: 'Write only the secret into the file, unless the other side has exactly this value.',
  }
}

function judgeText(content: Buffer, holds: Content): FileVerdict {
  const text = content.toString('utf8').replace(/\r?\n$/, '')
  if (text.trim() === '') throw new ContentProblem(`it is blank, expected ${EXPECTED[holds]}`)
  if (holds === 'token' && !TOKEN.test(text))
    throw new ContentProblem('it holds no bearer token, expected one token on one line (RFC 6750 §2.1)')
  return FINE
}

/** Validates the private key. An unreadable certificate is reported where it is referenced, not here. */
function judgeKey(content: Buffer, name: string, certificate: string | undefined): FileVerdict {
  const key = readPrivateKey(content)
  if (certificate === undefined) return FINE
  let own: X509Certificate | undefined
  try {
    own = readCertificates(readBounded(certificate, MAX_PEM_BYTES))[0]
  } catch {
    return FINE
  }
  if (own?.checkPrivateKey(key) === false)
    throw new ContentProblem(
      `it is the key of another certificate: ${certificate} and ${name}; both must be PEM and match`,
    )
  return { ...FINE, message: 'belongs to the certificate' }
}

/** Checks the validity period. A server sends the first certificate of a chain; of a CA bundle, any certificate may match. */
function judgeValidity(all: readonly X509Certificate[], name: string, holds: Content, nowMs: EpochMs): FileVerdict {
  const counting = holds === 'certificate chain' ? all.slice(0, 1) : all
  const endsOf = (some: readonly X509Certificate[]): number[] => some.map(({ validToDate }) => validToDate.getTime())
  const lastEnd = Math.max(...endsOf(counting))
  if (expiryOf(lastEnd, nowMs) === 'expired')
    return {
      level: 'unusable',
      message: `the certificate in ${name} expired on ${dayOf(lastEnd)}`,
      remedy: 'Renew it.',
    }
  const begin = Math.min(...counting.map(({ validFromDate }) => validFromDate.getTime()))
  if (begin > nowMs) {
    const message = `the certificate in ${name} is not valid before ${dayOf(begin)}`
    return { level: 'unusable', message, remedy: 'Wait, or check the clock.' }
  }
  const states = endsOf(all).map((end) => expiryOf(end, nowMs))
  const expired = states.filter((state) => state === 'expired').length
  if (expired > 0)
    return {
      level: 'remark',
      message: `${expired} of ${all.length} certificates in ${name} have expired`,
      remedy: 'Remove them.',
    }
  const firstEnd = dayOf(Math.min(...endsOf(all)))
  if (states.includes('soon')) {
    const message = `the certificate in ${name} expires on ${firstEnd}`
    return { level: 'remark', message, remedy: 'Renew it before that.' }
  }
  return { ...FINE, message: `valid until ${firstEnd}${all.length === 1 ? '' : ` (the first of ${all.length})`}` }
}

const refused = (name: string, { message }: ContentProblem, holds: Content): FileVerdict => ({
  level: 'refused',
  message: `${name} cannot be used: ${message}`,
  remedy: remedyFor(holds),
})

const unusable = (message: string, consequence: string, holds: Content): FileVerdict => ({
  level: 'unusable',
  message,
  consequence,
  remedy: remedyFor(holds),
})

const remedyFor = (holds: Content): string => `Put ${EXPECTED[holds]} there.`

function fileSentence(name: string, problem: FileProblem, holds: Content): string {
  const expected = `expected ${EXPECTED[holds]}`
  if (problem === 'missing')
    return `there is no file ${name}; ${expected}, with a path that is absolute or relative to the referencing file`
  const clause = `${name} ${clauseOf(problem, name)}`
  return problem === 'unreadable' ? clause : `${clause}; ${expected}`
}

function clauseOf(problem: FileProblem, name: string): string {
  const [clause] = UNREADABLE[problem]
  const why = problem === 'unreadable' ? denied(name) : undefined
  return why === undefined ? clause : `${clause} (${why.errno}: ${deniedClause(why)})`
}
