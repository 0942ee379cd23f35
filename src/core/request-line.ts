import { createHash } from 'node:crypto'
import type { AuthenticatedCaller, Caller } from './caller.ts'
import { explain } from './explanation.ts'
import { causeOf, type Failure } from './failure.ts'
import type { Log } from './ports.ts'
import type { SecretMask } from './masking/secret-mask.ts'

/** What every listener logs of a request (docs/monitor.md): never a token, a subject, a query, nor a path that leads somewhere. */
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
  /** Who was refused, as far as it is known; undefined for all other requests. */
  readonly from?: RefusedFrom | undefined
}

/** Who was refused: nothing of it is verified but the address. */
export interface RefusedFrom {
  /** Address, after trusted proxies; undefined where it is to be in no log. */
  readonly client: string | undefined
  readonly userAgent: string | undefined
  /** Where nothing is there: the path, without its query. */
  readonly path: string | undefined
  /** What the token says of itself. */
  readonly unverified: object | undefined
}

/** Characters of a text of the client's. */
const MAX_TEXT = 256

/** The same with texts of the client's cut to what a line may hold; undefined unless `status` is a refusal (4xx). */
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
 * Writes the line with what the client was not told, louder where the person who runs this has to do something. `secrets` are
 * those that the request came with: what of a failure comes from outside may hold them.
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
  // What happened and what to do, in the words of the inspector and of `extauth check`.
  const { cause: why, remedy } = explain(failure)
  const told = masked({ ...own, detail: failure.detail, cause, why, remedy, ...from }, secrets)
  if (failure.code === 'internal_error') log.error({ ...told, at: firstFrame(failure.cause) }, 'request')
  else if (failure.status >= 500) log.warn(told, 'request')
  else log.info(told, 'request')
}

/** The line without what is secret in the request, in its texts of any depth. */
function masked<T extends object>(told: T, secrets: (() => Pick<SecretMask, 'isIn' | 'maskIn'>) | undefined): T {
  if (secrets === undefined) return told
  const mask = secrets()
  if (!mask.isIn(JSON.stringify(told))) return told
  const inside = (value: unknown): unknown =>
    typeof value === 'string'
      ? mask.maskIn(value)
      : typeof value === 'object' && value !== null
        ? Object.fromEntries(Object.entries(value).map(([name, one]) => [name, inside(one)]))
        : value
  return inside(told) as T
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
