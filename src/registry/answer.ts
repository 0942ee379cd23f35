import type { EndpointResponse, Failure } from '../core/index.ts'
import { registryFailureBody, retryAfterFor } from '../http/index.ts'

/**
 * Headers of every response: no sniffing, readable from any origin. That is safe because only bearer tokens give
 * access, which browsers never add automatically.
 */
export const COMMON_HEADERS: Readonly<Record<string, string>> = {
  'x-content-type-options': 'nosniff',
  'access-control-allow-origin': '*',
  'access-control-expose-headers': 'ETag, Retry-After, WWW-Authenticate, X-Request-Id',
}

export const ALLOWED_METHODS = 'GET, HEAD, OPTIONS'
export const JSON_TYPE = 'application/json; charset=utf-8'

/** Whether an `If-None-Match` contains `etag`, by weak comparison (RFC 9110 §13.1.2). */
export const matchesEtag = (ifNoneMatch: string | undefined, etag: string): boolean =>
  ifNoneMatch !== undefined &&
  ifNoneMatch.split(',').some((one) => [etag, '*'].includes(one.trim().replace(/^W\//, '')))

/** A failure as a response: status and message of the table, never its cause. */
export function failureHeaders(failure: Failure, challenge: string | undefined): Record<string, string> {
  const retryAfter = retryAfterFor(failure)
  return {
    'content-type': JSON_TYPE,
    'cache-control': 'no-store',
    ...(challenge === undefined ? {} : { 'www-authenticate': challenge }),
    ...(retryAfter === undefined ? {} : { 'retry-after': retryAfter }),
    ...(failure.status === 405 ? { allow: ALLOWED_METHODS } : {}),
  }
}

/** `{"error","error_description"}` (decisions §5). `hint` is our own text about the expected value. */
export function failureBody(failure: Failure, hint?: string): string {
  const body = registryFailureBody(failure)
  if (hint === undefined) return body
  const parsed = JSON.parse(body) as { error: string; error_description: string }
  return JSON.stringify({ ...parsed, error_description: `${parsed.error_description} ${hint}` })
}

/** The response to a request that fails before routing. */
export function failureResponse(failure: Failure, challenge: string | undefined): EndpointResponse {
  // After an ambiguous request, no other is read.
  const closes = failure.code === 'bad_request' ? { connection: 'close' } : undefined
  return {
    status: failure.status,
    headers: { ...COMMON_HEADERS, ...failureHeaders(failure, challenge), ...closes },
    body: failureBody(failure),
  }
}
