import { brotliDecompressSync, constants, gunzipSync, inflateSync } from 'node:zlib'
import type { Again } from '../core/index.ts'
import { parseHttpDate } from '../http/index.ts'

/** Bytes of a 400 or 403 that are looked at for the name of the error (decisions §4). */
export const PEEK_BYTES = 8 * 1024

/** Keys that have expired, or that AWS does not know (any more): those of a profile or a user were rotated. */
const REFUSED_KEYS =
  /\b(?:ExpiredToken(?:Exception)?|TokenExpired|RequestExpired|UnrecognizedClient(?:Exception)?|InvalidClientTokenId|InvalidAccessKeyId)\b|security token included in the request is (?:expired|invalid)/i
const SKEWED = /\bRequestTimeTooSkewed\b|Signature expired|Signature not yet current|not yet current/i

/** What is known of a rejected SigV4 request so far. */
export interface Rejection {
  readonly status: number
  /** Value of `x-amzn-errortype`, where there is one. */
  readonly errorType: string | undefined
  /** Value of `Date`: the backend's clock. */
  readonly date: string | undefined
  /** Value of `Content-Encoding`. */
  readonly coding: string | undefined
}

const skew = (rejection: Rejection): Again | undefined => {
  const serverTimeMs = parseHttpDate(rejection.date ?? '')
  return Number.isNaN(serverTimeMs) ? undefined : { reason: 'clock_skew', status: rejection.status, serverTimeMs }
}

/**
 * Whether a 400 or 403 speaks of the credential: `Again` when its headers name expired or unknown keys or a skewed clock (with the
 * backend's time, from `Date`), and `peek` when they don't, so that only the body can tell.
 */
export const judgeHeaders = (rejection: Rejection): Again | 'peek' =>
  judgeText(rejection, rejection.errorType ?? '') ?? 'peek'

/** The same for the first bytes of the body, as they came. */
export const judgeBody = (rejection: Rejection, body: Buffer): Again | undefined =>
  judgeText(rejection, decoded(body, rejection.coding).toString('latin1', 0, PEEK_BYTES))

const judgeText = (rejection: Rejection, text: string): Again | undefined => {
  if (SKEWED.test(text)) return skew(rejection)
  return REFUSED_KEYS.test(text) ? { reason: 'credential_rejected', status: rejection.status } : undefined
}

/** Bytes that the start of a compressed body may become; no error is as long. */
const MOST_DECODED = 256 * 1024

/** The first bytes of a body without its content coding, where clients ask for one; they may break off anywhere. */
function decoded(body: Buffer, coding: string | undefined): Buffer {
  const decode = DECODERS.get(coding?.trim().toLowerCase() ?? '')
  try {
    return decode === undefined ? body : decode(body)
  } catch {
    return body
  }
}

const WHAT_IS_THERE = { finishFlush: constants.Z_SYNC_FLUSH, maxOutputLength: MOST_DECODED }
const DECODERS: ReadonlyMap<string, (body: Buffer) => Buffer> = new Map([
  ['gzip', (body) => gunzipSync(body, WHAT_IS_THERE)],
  ['x-gzip', (body) => gunzipSync(body, WHAT_IS_THERE)],
  ['deflate', (body) => inflateSync(body, WHAT_IS_THERE)],
  ['br', (body) => brotliDecompressSync(body, { ...WHAT_IS_THERE, finishFlush: constants.BROTLI_OPERATION_FLUSH })],
])
