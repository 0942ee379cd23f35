import { Failure, OutboundError, type FailureCode } from '../../core/index.ts'
import { busyFailure, outboundFailure, retryAfterSeconds, type ServiceFailures } from '../../net/index.ts'

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

/** The same where the request is signed with an identity of the process: what ended or is not known is that one. */
const SIGNED: Readonly<Record<string, FailureCode>> = {
  ...CODES,
  ExpiredToken: 'aws_identity_unavailable',
  InvalidClientTokenId: 'aws_identity_unavailable',
  UnrecognizedClient: 'aws_identity_unavailable',
  SignatureDoesNotMatch: 'config_error',
}
/** The same where nobody calls: the process gets its own identity or the role of its first hop. */
const OWN: Readonly<Record<string, FailureCode>> = {
  ...SIGNED,
  InvalidIdentityToken: 'aws_identity_unavailable',
  IDPRejectedClaim: 'aws_identity_unavailable',
  AccessDenied: 'config_error',
}

/** Who is refused: a caller whose own token was shown, a caller for whom the process asked, or the process itself. */
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
/** Asked with the process's own keys: no token is in it that could rest. */
const SIGNED_STS: ServiceFailures = { ...STS, isAboutTokens: false }

/** What of an error of `@aws-sdk/client-sts` says how the call ended. */
interface SdkError {
  readonly name?: unknown
  readonly message?: unknown
  readonly Code?: unknown
  readonly $metadata?: { readonly httpStatusCode?: unknown }
  readonly $response?: { readonly statusCode?: unknown; readonly headers?: Readonly<Record<string, unknown>> }
}

/**
 * The failure that a failed call of STS stands for. `variesByCaller`: policies and tags are made of claims, so that too many
 * of them are a matter of the caller. Its detail has our own words, and the code that STS gave.
 */
export function stsFailure(
  error: unknown,
  nowMs: number,
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
    detail: `STS answered ${status ?? 'something'}${shown === undefined ? '' : ` ${shown}`}${isWithoutKey ? ': it cannot get the keys of the issuer' : ''}${asked === 'caller token' ? '' : hintOf(known, sdk.message)}`,
    cause: error,
    ...(code === 'expired_token' || code === 'invalid_token' ? { challenge: { error: 'invalid_token' } as const } : {}),
    ...(code !== undefined && WAITS.has(code)
      ? { retryAfterSeconds: retryAfterSeconds({ status: status ?? 0, headers }, service, nowMs) }
      : {}),
  })
}

/** The code of an error in the form that all AWS services use; `name` of an SDK error without one is a class of its own. */
const unknownCode = ({ Code }: SdkError): string | undefined =>
  typeof Code === 'string' && /^[A-Z][A-Za-z]{2,63}$/.test(Code) ? Code : undefined

const INVALID_TOKEN = 'InvalidIdentityToken'

/** Whether STS takes the token for invalid, which it also says while it has trouble with the issuer's keys. */
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

/** Whether STS does not take the keys that a request was signed with, or no longer. */
export function areKeysRefused(error: unknown): boolean {
  if (error instanceof Failure || error instanceof OutboundError || typeof error !== 'object' || error === null)
    return false
  const { Code, name }: SdkError = error
  return KEYS_REFUSED.has(codeOf(Code, SIGNED)) || KEYS_REFUSED.has(codeOf(name, SIGNED))
}

/** What of a refusal's text says what to do, in our own words: its text names principals and roles. */
function hintOf(code: string | undefined, message: unknown): string {
  const text = typeof message === 'string' ? message.slice(0, 2_000) : ''
  if (code === 'AccessDenied') {
    const action = /\bsts:(?:AssumeRole|TagSession|SetSourceIdentity)\b/.exec(text)?.[0]
    return action === undefined
      ? ''
      : `: ${action} is not allowed, by the trust policy of the role or the policy of who assumes it`
  }
  if (code === 'ValidationError' && /role chaining/i.test(text))
    return ': a role that is assumed by a role lasts one hour at most, see sessionDuration'
  return ''
}

/** "Couldn't retrieve verification key from your identity provider": the issuer can't be reached from STS. */
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

/** A refusal in STS's own shape that has no row above: a request that STS does not take as it is configured. */
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
