import type { Again } from '../core/index.ts'

/** Bytes of a 400 or 403 that are looked at for the name of the error (decisions §4). */
export const PEEK_BYTES = 8 * 1024

const EXPIRED =
  /\b(?:ExpiredToken(?:Exception)?|TokenExpired|RequestExpired)\b|security token included in the request is expired/i
const SKEWED = /\bRequestTimeTooSkewed\b|Signature expired|Signature not yet current|not yet current/i
/** These name a bad signature, of which a skewed clock is one cause: only the text tells. */
const SIGNATURE = /\b(?:SignatureDoesNotMatch|InvalidSignatureException)\b/

/** What is known of a rejected SigV4 request so far. */
export interface Rejection {
  readonly status: number
  /** Value of `x-amzn-errortype`, where there is one. */
  readonly errorType: string | undefined
  /** Value of `Date`: the backend's clock. */
  readonly date: string | undefined
}

const skew = (rejection: Rejection): Again | undefined => {
  const serverTimeMs = Date.parse(rejection.date ?? '')
  return Number.isNaN(serverTimeMs) ? undefined : { reason: 'clock_skew', status: rejection.status, serverTimeMs }
}

/**
 * Whether a 400 or 403 speaks of the credential: `Again` when it names an expired token or a skewed clock (with the
 * backend's time, from `Date`), `undefined` when it is about something else, and `peek` when only the body can tell.
 */
export const judgeHeaders = (rejection: Rejection): Again | 'peek' | undefined => {
  const { errorType } = rejection
  if (errorType === undefined || SIGNATURE.test(errorType)) return 'peek'
  if (EXPIRED.test(errorType)) return { reason: 'credential_rejected', status: rejection.status }
  return SKEWED.test(errorType) ? skew(rejection) : undefined
}

/** The same for the first bytes of the body. */
export const judgeBody = (rejection: Rejection, body: Buffer): Again | undefined => {
  const text = body.toString('latin1', 0, PEEK_BYTES)
  if (SKEWED.test(text)) return skew(rejection)
  return EXPIRED.test(text) ? { reason: 'credential_rejected', status: rejection.status } : undefined
}
