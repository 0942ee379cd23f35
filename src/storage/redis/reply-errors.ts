import { StoreError, type StoreErrorKind } from '../port.ts'
import type { Endpoint } from './config.ts'

/** A host name without an address. */
export const NAME_NOT_RESOLVED = 'name_not_resolved'

interface Meaning {
  readonly kind: StoreErrorKind
  /** The server is no longer a master: locate it again. */
  readonly isElsewhere: boolean
}

/** Meaning of the first word of an error reply; others are `refused`. None was executed. */
const MEANINGS: Readonly<Record<string, Meaning>> = {
  READONLY: { kind: 'unavailable', isElsewhere: true },
  MASTERDOWN: { kind: 'unavailable', isElsewhere: true },
  LOADING: { kind: 'unavailable', isElsewhere: true },
  UNBLOCKED: { kind: 'unavailable', isElsewhere: true },
  BUSY: { kind: 'unavailable', isElsewhere: false },
  TRYAGAIN: { kind: 'unavailable', isElsewhere: false },
  NOREPLICAS: { kind: 'too_few_replicas', isElsewhere: false },
}

/** An error reply: the server did not execute the command. */
export class ReplyError extends StoreError {
  /** Its first word, such as `NOPERM`; the rest may quote the command. */
  declare readonly code: string
  readonly isElsewhere: boolean
  /** For `NOPERM`: the missing kind of permission. */
  readonly lacks: 'command' | 'key' | 'channel' | undefined

  constructor(code: string, endpoint?: Endpoint, lacks?: ReplyError['lacks']) {
    const { kind, isElsewhere } = MEANINGS[code] ?? { kind: 'refused', isElsewhere: false }
    super(kind, { cause: code, code, endpoint })
    this.isElsewhere = isElsewhere
    this.lacks = lacks
  }
}

/**
 * Converts an error of the client library without its text, which may contain arguments. Error replies become
 * `ReplyError`; others `unavailable`, with unknown result.
 */
export function toStoreError(error: unknown, endpoint?: Endpoint): StoreError {
  if (error instanceof StoreError) return error
  if (!(error instanceof Error)) return new StoreError('unavailable', { endpoint })
  if (error.name === 'ReplyError') return new ReplyError(codeOf(error.message), endpoint, lackedIn(error.message))
  const code = 'code' in error && typeof error.code === 'string' ? error.code : error.name
  const isName = code === 'ENOTFOUND' || code === 'EAI_AGAIN'
  return new StoreError('unavailable', { cause: code, code: isName ? NAME_NOT_RESOLVED : undefined, endpoint })
}

function lackedIn(message: string): ReplyError['lacks'] {
  const [, what] = /\baccess (?:a|one of the) (key|channel)s?\b/.exec(message) ?? []
  return what === 'key' || what === 'channel' ? what : undefined
}

/** A missing permission in a script is an `ERR` with different text in each version of Redis and Valkey. */
function codeOf(message: string): string {
  if (/executing the script can't|ACL failure in script/.test(message)) return 'NOPERM'
  return /^-?([A-Z]+)/.exec(message)?.[1] ?? 'ERR'
}
