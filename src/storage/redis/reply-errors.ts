import { StoreError, type StoreErrorKind } from '../port.ts'

interface Meaning {
  readonly kind: StoreErrorKind
  /** The connection leads to something that is no master now: look for it again. */
  readonly isElsewhere: boolean
}

/** What the first word of an error reply means; all others are `refused`. None of these was carried out. */
const MEANINGS: Readonly<Record<string, Meaning>> = {
  READONLY: { kind: 'unavailable', isElsewhere: true },
  MASTERDOWN: { kind: 'unavailable', isElsewhere: true },
  LOADING: { kind: 'unavailable', isElsewhere: true },
  UNBLOCKED: { kind: 'unavailable', isElsewhere: true },
  BUSY: { kind: 'unavailable', isElsewhere: false },
  TRYAGAIN: { kind: 'unavailable', isElsewhere: false },
  NOREPLICAS: { kind: 'too_few_replicas', isElsewhere: false },
}

/** An error reply: the server looked at the command and did not do it. */
export class ReplyError extends StoreError {
  /** Its first word, such as `NOPERM`; the rest may quote the command. */
  readonly code: string
  readonly isElsewhere: boolean

  constructor(code: string) {
    const { kind, isElsewhere } = MEANINGS[code] ?? { kind: 'refused', isElsewhere: false }
    super(kind, { cause: code })
    this.code = code
    this.isElsewhere = isElsewhere
  }
}

/**
 * What an error of the client library says, without its text: that may hold the arguments of a command. An error reply
 * becomes a `ReplyError`, everything else `unavailable`: whether the command was carried out is then not known.
 */
export function toStoreError(error: unknown): StoreError {
  if (error instanceof StoreError) return error
  if (!(error instanceof Error)) return new StoreError('unavailable')
  if (error.name === 'ReplyError') return new ReplyError(/^-?([A-Z]+)/.exec(error.message)?.[1] ?? 'ERR')
  const code = 'code' in error && typeof error.code === 'string' ? error.code : error.name
  return new StoreError('unavailable', { cause: code })
}
