import { Failure, OutboundError, type FailureCode } from '../../core/index.ts'

/** Error codes of STS and whose fault each is (decisions §5). Codes are compared without a trailing `Exception`. */
const CODES: Readonly<Record<string, FailureCode>> = {
  ExpiredToken: 'expired_token',
  IDPRejectedClaim: 'invalid_token',
  AccessDenied: 'role_denied',
  // We verified the token, so what STS does not trust is its issuer or its audience: somebody has to set that up.
  InvalidIdentityToken: 'config_error',
  ValidationError: 'config_error',
  RegionDisabled: 'config_error',
  PackedPolicyTooLarge: 'config_error',
  MalformedPolicyDocument: 'config_error',
  IDPCommunicationError: 'identity_provider_unavailable',
  Throttling: 'sts_throttled',
  ThrottledRequest: 'sts_throttled',
  TooManyRequests: 'sts_throttled',
  RequestLimitExceeded: 'sts_throttled',
  RequestThrottled: 'sts_throttled',
  SlowDown: 'sts_throttled',
  ServiceUnavailable: 'sts_unavailable',
  InternalFailure: 'sts_unavailable',
  InternalError: 'sts_unavailable',
  RequestTimeout: 'sts_unavailable',
}

const DEFAULT_RETRY_AFTER_SECONDS = 1
const LONGEST_RETRY_AFTER_SECONDS = 3600

/** What of an error of `@aws-sdk/client-sts` says how the call ended. */
interface SdkError {
  readonly name?: unknown
  readonly Code?: unknown
  readonly $metadata?: { readonly httpStatusCode?: unknown }
  readonly $response?: { readonly statusCode?: unknown; readonly headers?: Readonly<Record<string, unknown>> }
}

/** The failure that a failed call of STS stands for. Its detail has words and codes of our own tables only. */
export function stsFailure(error: unknown, nowMs: number): Failure {
  if (error instanceof Failure) return error
  if (error instanceof OutboundError) return outboundFailure(error)
  const sdk: SdkError = typeof error === 'object' && error !== null ? error : {}
  const status = numberOf(sdk.$metadata?.httpStatusCode) ?? numberOf(sdk.$response?.statusCode)
  const known = [sdk.Code, sdk.name].map(codeOf).find((code) => code !== undefined)
  const code = known === undefined ? codeOfStatus(status, sdk) : CODES[known]
  const retryAfterSeconds = retryAfter(sdk.$response?.headers, nowMs)
  return new Failure(code ?? 'sts_failed', {
    detail: `STS answered ${status ?? 'something'}${known === undefined ? '' : ` ${known}`}`,
    cause: error,
    ...(code === 'expired_token' || code === 'invalid_token' ? { challenge: { error: 'invalid_token' } as const } : {}),
    ...(code !== undefined && WAITS.has(code) ? { retryAfterSeconds } : {}),
  })
}

const WAITS = new Set<FailureCode>(['sts_throttled', 'sts_unavailable', 'identity_provider_unavailable'])

function codeOf(value: unknown): string | undefined {
  const code = typeof value === 'string' ? value.replace(/Exception$/, '') : ''
  return Object.hasOwn(CODES, code) ? code : undefined
}

function codeOfStatus(status: number | undefined, sdk: SdkError): FailureCode {
  if (status === 429) return 'sts_throttled'
  if (status !== undefined && status >= 500) return 'sts_unavailable'
  // A refusal in STS's own shape that has no row above: a request that STS does not take as it is configured.
  const isRefusal = status !== undefined && status >= 400 && typeof sdk.Code === 'string' && sdk.Code !== ''
  return isRefusal ? 'config_error' : 'sts_failed'
}

function outboundFailure(error: OutboundError): Failure {
  const options = { detail: `STS: ${error.kind}`, cause: error.cause }
  if (error.kind === 'too_large') return new Failure('sts_failed', options)
  if (error.kind === 'blocked_address') return new Failure('config_error', options)
  const retryAfterSeconds = error.retryAfterSeconds ?? DEFAULT_RETRY_AFTER_SECONDS
  // timeout, unreachable and breaker_open: STS itself could not be asked.
  const code = error.kind === 'overloaded' ? 'overloaded' : 'sts_unavailable'
  return new Failure(code, { ...options, retryAfterSeconds })
}

/** Retry-After in seconds or as a date (RFC 9110 §10.2.3), between 1 and 3600; 1 when there is none. */
function retryAfter(headers: Readonly<Record<string, unknown>> | undefined, nowMs: number): number {
  const value = headers?.['retry-after']
  if (typeof value !== 'string') return DEFAULT_RETRY_AFTER_SECONDS
  const seconds = /^\d{1,9}$/.test(value) ? Number(value) : (Date.parse(value) - nowMs) / 1000
  if (!Number.isFinite(seconds)) return DEFAULT_RETRY_AFTER_SECONDS
  return Math.min(LONGEST_RETRY_AFTER_SECONDS, Math.max(1, Math.ceil(seconds)))
}

function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined
}
