import { createHash } from 'node:crypto'
import type { AuthenticatedCaller, Caller } from './caller.ts'
import { causeOf, type Failure } from './failure.ts'
import type { Log } from './ports.ts'

/** What every listener logs of a request (docs/operations.md): never a token, a subject, a query, nor a path of a caller's. */
export interface RequestLine {
  readonly requestId: string
  /** Empty when none was matched. */
  readonly route: string
  readonly type?: string
  readonly method: string
  /** Path of an endpoint of our own. */
  readonly endpoint?: string | undefined
  /** From `callerHash`. */
  readonly caller: string | undefined
  readonly status: number
  /** A failure code, `client_gone`, `aborted`; undefined when all went well. */
  readonly reason: string | undefined
  readonly durationMs: number
  readonly firstByteMs?: number | undefined
  readonly attempts?: number
}

/** Writes the line with what the client was not told, louder where the person who runs this has to do something. */
export function logRequest(log: Log, line: RequestLine, failure: Failure | undefined): void {
  if (failure === undefined) return log.info(line, 'request')
  const cause = failure.cause === undefined ? undefined : causeOf(failure.cause)
  const told = { ...line, detail: failure.detail, cause }
  if (failure.code === 'internal_error') log.error({ ...told, at: firstFrame(failure.cause) }, 'request')
  else if (failure.status >= 500) log.warn(told, 'request')
  else log.info(told, 'request')
}

/** Where a bug is: the first stack frame holds a place in our code, no text from outside. */
function firstFrame(cause: unknown): string | undefined {
  return cause instanceof Error
    ? cause.stack
        ?.split('\n')
        .find((line) => /^\s+at /.test(line))
        ?.trim()
    : undefined
}

const HASH_LENGTH = 16
const hashes = new WeakMap<AuthenticatedCaller, string>()

/**
 * One caller in many lines can be followed, and nobody is named: 16 hex of SHA-256 over issuer and identity, made once per
 * caller; undefined for nobody in particular.
 */
export function callerHash(caller: Caller | undefined): string | undefined {
  if (caller?.kind !== 'authenticated') return undefined
  let hash = hashes.get(caller)
  if (hash === undefined) {
    const text = JSON.stringify([caller.issuer, caller.identity])
    hash = createHash('sha256').update(text).digest('hex').slice(0, HASH_LENGTH)
    hashes.set(caller, hash)
  }
  return hash
}
