import { brotliDecompressSync, constants, gunzipSync, inflateSync } from 'node:zlib'
import type { Again } from '../core/index.ts'
import { parseHttpDate } from '../http/index.ts'

/** Bytes of a 400 or 403 body to search for the error name (decisions §4). */
export const PEEK_BYTES = 8 * 1024

/** Expired keys, or keys unknown to AWS: those of a profile or user were rotated. */
const REFUSED_KEYS =
  /\b(?:ExpiredToken(?:Exception)?|TokenExpired|RequestExpired|UnrecognizedClient(?:Exception)?|InvalidClientTokenId|InvalidAccessKeyId)\b|security token included in the request is (?:expired|invalid)/i
const SKEWED = /\bRequestTimeTooSkewed\b|Signature expired|Signature not yet current|not yet current/i

/** A rejected SigV4 request. */
export interface Rejection {
  readonly status: number
  /** Value of `x-amzn-errortype`, if any. */
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
 * Whether a 400 or 403 is about the credential: `Again` if its headers show expired or unknown keys or a clock
 * difference (with the backend's time in `Date`); else `peek`, and the body decides.
 */
export const judgeHeaders = (rejection: Rejection): Again | 'peek' =>
  judgeText(rejection, rejection.errorType ?? '') ?? 'peek'

/** The same for the first bytes of the body, as received. */
export const judgeBody = (rejection: Rejection, body: Buffer): Again | undefined =>
  judgeText(rejection, decoded(body, rejection.coding).toString('latin1', 0, PEEK_BYTES))

const judgeText = (rejection: Rejection, text: string): Again | undefined => {
  if (SKEWED.test(text)) return skew(rejection)
  return REFUSED_KEYS.test(text) ? { reason: 'credential_rejected', status: rejection.status } : undefined
}

/** Maximum decompressed size of the start of a body; errors are shorter. */
const MOST_DECODED = 256 * 1024

/** Decodes the first bytes of a body with content coding; they may be truncated. */
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
