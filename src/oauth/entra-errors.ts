import type { Claims, FailureCode } from '../core/index.ts'

const MAX_CODES = 16
const ID = /^[0-9A-Za-z-]{1,64}$/
const CODE_IN_TEXT = /^AADSTS(\d{4,9}):/

/**
 * The numbers behind AADSTS (Microsoft, "Microsoft Entra authentication and authorization error codes"), in the order in which
 * they are judged: our configuration, rights that somebody grants, another login, the end of the token.
 */
const CODES: readonly (readonly [aadsts: number, code: FailureCode, says: string])[] = [
  [7000215, 'config_error', 'the client secret is not the right one (its value is needed, not its ID)'],
  [7000222, 'config_error', 'the client secret has expired'],
  [7000218, 'config_error', 'the tenant wants the client to authenticate'],
  [700016, 'config_error', 'the tenant has no application with this client ID'],
  [7000112, 'config_error', 'the application is disabled in the tenant'],
  [700027, 'config_error', 'the certificate or key is not registered with the application'],
  [700024, 'config_error', 'the client assertion is not within its time: compare clocks'],
  [70021, 'config_error', 'no federated credential of the application fits the token in the file'],
  [700211, 'config_error', 'no federated credential of the application has the issuer of the token in the file'],
  [700213, 'config_error', 'no federated credential of the application has the subject of the token in the file'],
  [90009, 'config_error', 'the application asks for a token for itself: scopes must name it by its client ID'],
  [90002, 'config_error', 'there is no such tenant'],
  [500011, 'config_error', 'the tenant has no such resource: look at audience or scopes'],
  [50001, 'config_error', 'the tenant has no such resource: look at audience or scopes'],
  [28000, 'config_error', 'the scopes are of more than one resource'],
  [70011, 'config_error', 'the scopes are not valid'],
  [500131, 'config_error', 'the token was issued for another application: compare its aud with the client ID'],
  [240002, 'config_error', 'an ID token was shown, and an access token is needed'],
  [65001, 'exchange_denied', 'nobody has consented'],
  [90094, 'exchange_denied', 'nobody has consented, and only an administrator can'],
  [50105, 'exchange_denied', 'the user is not assigned to the application'],
  [7000114, 'not_a_user_token', 'it is not the token of a user'],
  [50076, 'interaction_required', 'multi-factor authentication is required'],
  [50079, 'interaction_required', 'the user has to set up multi-factor authentication'],
  [53000, 'interaction_required', 'the device is not compliant'],
  [53001, 'interaction_required', 'the device is not joined to the domain'],
  [53002, 'interaction_required', 'the application is not one that the policy approves'],
  [53003, 'interaction_required', 'a policy of conditional access blocks the token'],
  [53004, 'interaction_required', 'the user has to set up multi-factor authentication from a trusted place'],
  [50158, 'interaction_required', 'an external challenge has to be met'],
  [70043, 'invalid_token', 'the login is older than the tenant allows'],
  [700082, 'invalid_token', 'the login has ended for want of use'],
  [50173, 'invalid_token', 'the password was changed after the login'],
  [70008, 'invalid_token', 'the login has ended'],
  [500133, 'invalid_token', 'the token has ended'],
  [
    50013,
    'invalid_token',
    'the token is no valid assertion: compare its aud, tenant and version (ver) with the application',
  ],
]

/** What the error response of an Entra ID token endpoint says beside `error`. */
export interface EntraError {
  readonly codes: readonly number[]
  /** The first code that is known: what it stands for. */
  readonly known: { readonly aadsts: number; readonly code: FailureCode; readonly says: string } | undefined
  /** Codes and identifiers by which the tenant's sign-in log is searched, such as `AADSTS90009, trace_id …`; empty without any. */
  readonly traces: string
}

/** Reads numbers and identifiers only, and nothing of the description. */
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
  const [aadsts, code, says] = CODES.find(([number]) => codes.includes(number)) ?? []
  return {
    codes,
    known: aadsts === undefined || code === undefined || says === undefined ? undefined : { aadsts, code, says },
    traces: [...codes.map((number) => `AADSTS${number}`), ...ids].join(', '),
  }
}
