import { createHash } from 'node:crypto'
import type { AuthenticatedCaller, Caller } from './caller.ts'
import { explain } from './explanation.ts'
import { causeOf, type Failure } from './failure.ts'
import type { Log } from './ports.ts'
import type { SecretMask } from './masking/secret-mask.ts'

/**
 * The access log fields of every listener (docs/monitor.md): never a token, a subject, a query, nor a backend path.
 */
export interface RequestLine {
  readonly requestId: string
  /** Empty when none was matched. */
  readonly route: string
  readonly type?: string
  readonly method: string
  /** Path of one of the proxy's own endpoints. */
  readonly endpoint?: string | undefined
  /** From `callerHash`. */
  readonly caller: string | undefined
  readonly status: number
  /** A failure code, `client_gone`, `aborted`; undefined on success. */
  readonly reason: string | undefined
  readonly durationMs: number
  readonly firstByteMs?: number | undefined
  readonly attempts?: number
  /** The rejected client; undefined for other requests. */
  readonly from?: RefusedFrom | undefined
}

/** Describes a rejected client; only the address is verified. */
export interface RefusedFrom {
  /** Address, after trusted proxies; undefined where addresses are not logged. */
  readonly client: string | undefined
  readonly userAgent: string | undefined
  /** For 404: the path, without its query. */
  readonly path: string | undefined
  /** The token's unverified claims. */
  readonly unverified: object | undefined
}

/** Maximum characters of a client's text. */
const MAX_TEXT = 256

/** Truncates the client's texts for a log line; undefined unless `status` is 4xx. */
export function refusedFrom(
  status: number,
  { client, userAgent, path, unverified }: RefusedFrom,
): RefusedFrom | undefined {
  if (status < 400 || status >= 500) return undefined
  return {
    client,
    userAgent: userAgent?.slice(0, MAX_TEXT),
    path: status === 404 ? path?.slice(0, MAX_TEXT) : undefined,
    unverified,
  }
}

/**
 * Writes the access log line with the internal detail, at a higher level when the operator must act. Details of a
 * failure may quote the request, so its `secrets` are masked.
 */
export function logRequest(
  log: Log,
  line: RequestLine,
  failure: Failure | undefined,
  secrets?: () => Pick<SecretMask, 'isIn' | 'maskIn'>,
): void {
  if (failure === undefined) return log.info(line, 'request')
  const cause = failure.cause === undefined ? undefined : causeOf(failure.cause)
  const { from, ...own } = line
  // Cause and remedy, worded as in the inspector and `extauth check`.
  const { cause: why, remedy } = explain(failure)
  const fields = masked({ ...own, detail: failure.detail, cause, why, remedy, ...from }, secrets)
  if (failure.code === 'internal_error') log.error({ ...fields, at: firstFrame(failure.cause) }, 'request')
  else if (failure.status >= 500) log.warn(fields, 'request')
  else log.info(fields, 'request')
}

/** Masks the request's secrets in all texts of the line, at any depth. */
function masked<T extends object>(fields: T, secrets: (() => Pick<SecretMask, 'isIn' | 'maskIn'>) | undefined): T {
  if (secrets === undefined) return fields
  const mask = secrets()
  if (!mask.isIn(JSON.stringify(fields))) return fields
  const inside = (value: unknown): unknown =>
    typeof value === 'string'
      ? mask.maskIn(value)
      : typeof value === 'object' && value !== null
        ? Object.fromEntries(Object.entries(value).map(([name, one]) => [name, inside(one)]))
        : value
  return inside(fields) as T
}

/** The location of a bug: the first stack frame names this program's code and holds no external text. */
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
 * Correlates a caller's log lines without naming the user: 16 hex digits of SHA-256 over issuer and identity,
 * computed once per caller; undefined for anonymous callers.
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
