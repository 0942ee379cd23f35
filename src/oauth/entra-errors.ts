import type { Claims, FailureCode } from '../core/index.ts'

const MAX_CODES = 16
const ID = /^[0-9A-Za-z-]{1,64}$/
const CODE_IN_TEXT = /^AADSTS(\d{4,9}):/

/**
 * AADSTS codes (Microsoft, "Microsoft Entra authentication and authorization error codes"), by precedence:
 * configuration, permissions, another login, expiry.
 */
const CODES: readonly (readonly [aadsts: number, code: FailureCode, meaning: string])[] = [
  [7000215, 'config_error', 'the client secret is wrong (use its value, not its ID)'],
  [7000222, 'config_error', 'the client secret has expired'],
  [7000218, 'config_error', 'the tenant requires client authentication'],
  [700016, 'config_error', 'the tenant has no application with this client ID'],
  [7000112, 'config_error', 'the application is disabled in the tenant'],
  [700027, 'config_error', 'the certificate or key is not registered with the application'],
  [700024, 'config_error', 'the client assertion is expired or not yet valid: compare clocks'],
  [70021, 'config_error', 'no federated credential of the application matches the token in the file'],
  [700211, 'config_error', 'no federated credential of the application has the issuer of the token in the file'],
  [700213, 'config_error', 'no federated credential of the application has the subject of the token in the file'],
  [90009, 'config_error', 'the application requests a token for itself: scopes must use its client ID'],
  [90002, 'config_error', 'the tenant does not exist'],
  [500011, 'config_error', 'the tenant does not have this resource: check audience and scopes'],
  [50001, 'config_error', 'the tenant does not have this resource: check audience and scopes'],
  [28000, 'config_error', 'the scopes belong to more than one resource'],
  [70011, 'config_error', 'the scopes are not valid'],
  [500131, 'config_error', 'the token was issued for a different application: compare its aud with the client ID'],
  [240002, 'config_error', 'an ID token was sent instead of an access token'],
  [65001, 'exchange_denied', 'consent is missing'],
  [90094, 'exchange_denied', 'administrator consent is missing'],
  [50105, 'exchange_denied', 'the user is not assigned to the application'],
  [7000114, 'not_a_user_token', "it is not a user's token"],
  [50076, 'interaction_required', 'multi-factor authentication is required'],
  [50079, 'interaction_required', 'the user must set up multi-factor authentication'],
  [53000, 'interaction_required', 'the device is not compliant'],
  [53001, 'interaction_required', 'the device is not joined to the domain'],
  [53002, 'interaction_required', 'the policy does not approve the application'],
  [53003, 'interaction_required', 'a conditional access policy blocks the token'],
  [53004, 'interaction_required', 'the user must set up multi-factor authentication from a trusted location'],
  [50158, 'interaction_required', 'an external challenge is required'],
  [70043, 'invalid_token', 'the login is older than the tenant allows'],
  [700082, 'invalid_token', 'the login expired because it was not used'],
  [50173, 'invalid_token', 'the password was changed after the login'],
  [70008, 'invalid_token', 'the login has expired'],
  [500133, 'invalid_token', 'the token has expired'],
  [
    50013,
    'invalid_token',
    'the token is not a valid assertion: compare its aud, tenant and version (ver) with the application',
  ],
]

/** The Entra ID details of a token endpoint's error response. */
export interface EntraError {
  readonly codes: readonly number[]
  /** The first known code and its meaning. */
  readonly known: { readonly aadsts: number; readonly code: FailureCode; readonly meaning: string } | undefined
  /** Codes and ids for the tenant's sign-in log, such as `AADSTS90009, trace_id …`; empty without any. */
  readonly traces: string
}

/** Reads numbers and ids only; the description is ignored. */
export function entraErrorOf(members: Claims): EntraError {
  const { error_codes: listed, error_description: text, trace_id: trace, correlation_id: correlation } = members
  const inText = typeof text === 'string' ? CODE_IN_TEXT.exec(text)?.[1] : undefined
  const numbers = Array.isArray(listed)
    ? listed.slice(0, MAX_CODES).filter((code): code is number => Number.isSafeInteger(code) && Number(code) > 0)
    : []
  const codes = numbers.length > 0 || inText === undefined ? numbers : [Number(inText)]
  const ids = Object.entries({ trace_id: trace, correlation_id: correlation }).flatMap(([name, id]) =>
    typeof id === 'string' && ID.test(id) ? [`${name} ${id}`] : [],
  )
  const [aadsts, code, meaning] = CODES.find(([number]) => codes.includes(number)) ?? []
  return {
    codes,
    known: aadsts === undefined || code === undefined || meaning === undefined ? undefined : { aadsts, code, meaning },
    traces: [...codes.map((number) => `AADSTS${number}`), ...ids].join(', '),
  }
}
