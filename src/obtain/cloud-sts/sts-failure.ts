import { type EpochMs, Failure, type FailureCode, OutboundError } from '../../core/index.ts'
import { busyFailure, outboundFailure, retryAfterSeconds, type ServiceFailures } from '../../net/index.ts'

/** STS error codes by responsible party (decisions §5). Codes are compared without a trailing `Exception`. */
const CODES: Readonly<Record<string, FailureCode>> = {
  ExpiredToken: 'expired_token',
  IDPRejectedClaim: 'invalid_token',
  AccessDenied: 'role_denied',
  // The proxy verified the token, so STS distrusts its issuer or audience: a configuration problem.
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

/** As above, for requests signed with a process identity, whose own keys expired or are unknown. */
const SIGNED: Readonly<Record<string, FailureCode>> = {
  ...CODES,
  ExpiredToken: 'aws_identity_unavailable',
  InvalidClientTokenId: 'aws_identity_unavailable',
  UnrecognizedClient: 'aws_identity_unavailable',
  SignatureDoesNotMatch: 'config_error',
}
/** As above, for requests without a caller: the process identity itself or its first hop. */
const OWN: Readonly<Record<string, FailureCode>> = {
  ...SIGNED,
  InvalidIdentityToken: 'aws_identity_unavailable',
  IDPRejectedClaim: 'aws_identity_unavailable',
  AccessDenied: 'config_error',
}

/** The rejected party: a caller by the caller's token, a caller the process asked for, or the process itself. */
export type RefusedParty = 'caller token' | 'caller' | 'process'
const TABLES: Readonly<Record<RefusedParty, Readonly<Record<string, FailureCode>>>> = {
  'caller token': CODES,
  caller: SIGNED,
  process: OWN,
}

const STS: ServiceFailures = {
  what: 'STS',
  unavailable: 'sts_unavailable',
  throttled: 'sts_throttled',
  unusable: 'sts_failed',
  isAboutTokens: true,
}
/** Called with the process's keys: no caller's token to pause. */
const SIGNED_STS: ServiceFailures = { ...STS, isAboutTokens: false }

/** The parts of an `@aws-sdk/client-sts` error that describe the outcome. */
interface SdkError {
  readonly name?: unknown
  readonly message?: unknown
  readonly Code?: unknown
  readonly $metadata?: { readonly httpStatusCode?: unknown }
  readonly $response?: { readonly statusCode?: unknown; readonly headers?: Readonly<Record<string, unknown>> }
}

/**
 * Maps a failed STS call. `variesByCaller`: claims determine policies and tags, so their size is the caller's fault.
 * The detail holds only the STS error code as external value.
 */
export function stsFailure(
  error: unknown,
  nowMs: EpochMs,
  asked: RefusedParty = 'caller token',
  { variesByCaller = false }: { readonly variesByCaller?: boolean | undefined } = {},
): Failure {
  const service = asked === 'caller token' ? STS : SIGNED_STS
  if (error instanceof Failure || error instanceof OutboundError) return outboundFailure(error, service)
  const sdk: SdkError = typeof error === 'object' && error !== null ? error : {}
  const status = numberOf(sdk.$metadata?.httpStatusCode) ?? numberOf(sdk.$response?.statusCode)
  const codes = TABLES[asked]
  const known = [sdk.Code, sdk.name].map((code) => codeOf(code, codes)).find((code) => code !== undefined)
  const shown = known ?? unknownCode(sdk)
  const headers = headersOf(sdk)
  if (known === undefined && status !== undefined) {
    const busy = busyFailure({ status, headers }, service, nowMs)
    if (busy !== undefined) return busy
  }
  const isWithoutKey = known === INVALID_TOKEN && isAboutKeys(sdk.message)
  const isTooMuch = variesByCaller && known === 'PackedPolicyTooLarge'
  const code = isWithoutKey
    ? 'identity_provider_unavailable'
    : isTooMuch
      ? 'role_denied'
      : known
        ? codes[known]
        : codeOfRefusal(status, sdk)
  return new Failure(code ?? 'sts_failed', {
    detail: `STS answered ${status ?? 'no status'}${shown === undefined ? '' : ` ${shown}`}${isWithoutKey ? ': it cannot get the keys of the issuer' : ''}${asked === 'caller token' ? '' : hintOf(known, sdk.message)}`,
    cause: error,
    ...(code === 'expired_token' || code === 'invalid_token' ? { challenge: { error: 'invalid_token' } as const } : {}),
    ...(code !== undefined && WAITS.has(code)
      ? { retryAfterSeconds: retryAfterSeconds({ status: status ?? 0, headers }, service, nowMs) }
      : {}),
  })
}

/** The error code, as all AWS services send it; the `name` of an SDK error without one is a class name. */
const unknownCode = ({ Code }: SdkError): string | undefined =>
  typeof Code === 'string' && /^[A-Z][A-Za-z]{2,63}$/.test(Code) ? Code : undefined

const INVALID_TOKEN = 'InvalidIdentityToken'

/** Whether STS rejects the token as invalid, which it also does while it can't fetch the issuer's keys. */
export function isInvalidIdentityToken(error: unknown): boolean {
  if (error instanceof Failure || error instanceof OutboundError || typeof error !== 'object' || error === null)
    return false
  const { Code, name }: SdkError = error
  return codeOf(Code, CODES) === INVALID_TOKEN || codeOf(name, CODES) === INVALID_TOKEN
}

const KEYS_REFUSED: ReadonlySet<string | undefined> = new Set([
  'ExpiredToken',
  'InvalidClientTokenId',
  'UnrecognizedClient',
])

/** Whether STS rejects the keys that signed the request. */
export function areKeysRefused(error: unknown): boolean {
  if (error instanceof Failure || error instanceof OutboundError || typeof error !== 'object' || error === null)
    return false
  const { Code, name }: SdkError = error
  return KEYS_REFUSED.has(codeOf(Code, SIGNED)) || KEYS_REFUSED.has(codeOf(name, SIGNED))
}

/** A remedy derived from a rejection's message, which itself names principals and roles. */
function hintOf(code: string | undefined, message: unknown): string {
  const text = typeof message === 'string' ? message.slice(0, 2_000) : ''
  if (code === 'AccessDenied') {
    const action = /\bsts:(?:AssumeRole|TagSession|SetSourceIdentity)\b/.exec(text)?.[0]
    return action === undefined
      ? ''
      : `: ${action} is denied by the role's trust policy or by the policy of the assuming identity`
  }
  if (code === 'ValidationError' && /role chaining/i.test(text))
    return ': role chaining limits sessions to one hour, see sessionDuration'
  return ''
}

/** "Couldn't retrieve verification key from your identity provider": STS can't reach the issuer. */
const isAboutKeys = (message: unknown): boolean =>
  typeof message === 'string' && /retrieve verification key/i.test(message.slice(0, 1_000))

const WAITS = new Set<FailureCode>([
  'sts_throttled',
  'sts_unavailable',
  'identity_provider_unavailable',
  'aws_identity_unavailable',
])

function codeOf(value: unknown, codes: Readonly<Record<string, FailureCode>>): string | undefined {
  const code = typeof value === 'string' ? value.replace(/Exception$/, '') : ''
  return Object.hasOwn(codes, code) ? code : undefined
}

/** A rejection in STS's format without a row above: STS does not accept the request as configured. */
function codeOfRefusal(status: number | undefined, sdk: SdkError): FailureCode {
  const isRefusal = status !== undefined && status >= 400 && typeof sdk.Code === 'string' && sdk.Code !== ''
  return isRefusal ? 'config_error' : 'sts_failed'
}

function headersOf(sdk: SdkError): Record<string, string> {
  const entries = Object.entries(sdk.$response?.headers ?? {})
  return Object.fromEntries(entries.flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : [])))
}

function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined
}
