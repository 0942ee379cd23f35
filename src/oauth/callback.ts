import { Failure } from '../core/index.ts'
import { authorizationFailure } from './refusals.ts'

/** Callback rules from an authorization server's metadata. */
export interface CallbackRules {
  /** The issuer, if known; a callback with a different `iss` is rejected. */
  readonly issuer: string | undefined
  /** `authorization_response_iss_parameter_supported`: `iss` is then required (RFC 9207 §2.4). */
  readonly announcesIss: boolean
}

const unusable = (detail: string): Failure => new Failure('identity_provider_error', { detail })

/** Azure AD B2C issues codes of more than 4 KiB. */
const MAX_CODE_LENGTH = 12 * 1024
/** RFC 6749 appendix A.11. */
const CODE = /^[\x20-\x7e]+$/

/**
 * Reads the authorization code from the callback parameters. `iss` is checked first, because an error of another
 * server must be ignored. Throws `login_refused`, `config_error`, `identity_provider_unavailable`,
 * `identity_provider_error`.
 */
export function readCallback(parameters: URLSearchParams, { issuer, announcesIss }: CallbackRules): string {
  const one = (name: string): string | undefined => {
    const values = parameters.getAll(name)
    if (values.length > 1) throw unusable(`callback: ${name} occurs more than once`)
    return values[0]
  }
  const [iss, error, code] = [one('iss'), one('error'), one('code')]
  if (issuer !== undefined && iss !== undefined && iss !== issuer) throw unusable('callback: iss is a different issuer')
  if (announcesIss && iss === undefined) throw unusable('callback: iss is missing')
  if (error !== undefined) throw authorizationFailure(error)
  if (code === undefined || !CODE.test(code)) throw unusable('callback: code is missing or invalid')
  if (code.length > MAX_CODE_LENGTH) throw unusable('callback: the code is too long')
  return code
}
