import type { FailureCode } from '../../../src/core/index.ts'

/** An error answer of Microsoft Entra ID, and what the caller gets for it. */
export interface EntraCase {
  readonly status: number
  readonly error: string
  /** Numbers behind AADSTS. */
  readonly codes: readonly number[]
  /** Text of the error description after the number, as sent by Entra ID. */
  readonly text: string
  readonly more?: Readonly<Record<string, unknown>>
  readonly code: FailureCode
  /** The words of the log. */
  readonly says: string
}

export const CLAIMS =
  '{"access_token":{"capolids":{"essential":true,"values":["11111111-2222-3333-4444-555555555555"]}}}'
const claims = { claims: CLAIMS }
const TRACE = 'a0b1c2d3-0000-4000-8000-00000000c400'
const CORRELATION = 'd4e5f6a7-1111-4111-9111-111111111111'
export const TRACES = `trace_id ${TRACE}, correlation_id ${CORRELATION}`

/** The whole body, as Entra ID writes it. */
export function bodyOf({ error, codes, text, more = {} }: EntraCase): Readonly<Record<string, unknown>> {
  const timestamp = '2026-11-23 09:14:05Z'
  return {
    error,
    error_description: `AADSTS${codes[0]}: ${text} Trace ID: ${TRACE} Correlation ID: ${CORRELATION} Timestamp: ${timestamp}`,
    error_codes: codes,
    timestamp,
    trace_id: TRACE,
    correlation_id: CORRELATION,
    error_uri: `https://login.microsoftonline.com/error?code=${codes[0]}`,
    ...more,
  }
}

type Row = [status: number, error: string, codes: number | number[], text: string, says: string, more?: object]
const rows = (code: FailureCode, of: readonly Row[]): EntraCase[] =>
  of.map(([status, error, codes, text, says, more]) => ({
    status,
    error,
    codes: [codes].flat(),
    text,
    says,
    code,
    ...(more === undefined ? {} : { more: more as Record<string, unknown> }),
  }))

// prettier-ignore
export const ENTRA_ANSWERS: readonly EntraCase[] = [
  ...rows('interaction_required', [
    [400, 'interaction_required', 50076, 'Due to a configuration change made by your administrator, or because you moved to a new location, you must use multi-factor authentication to access the resource.', 'multi-factor authentication is required', { ...claims, suberror: 'basic_action' }],
    [400, 'invalid_grant', 50076, 'Due to a configuration change made by your administrator, you must use multi-factor authentication.', 'multi-factor authentication is required', claims],
    [400, 'invalid_grant', 50076, 'You must use multi-factor authentication.', 'multi-factor authentication is required'],
    [400, 'interaction_required', 50079, 'Due to a configuration change made by your administrator, you must enroll in multi-factor authentication.', 'the user must set up multi-factor', claims],
    [400, 'invalid_grant', 53000, 'Device is not in required device state: noncompliant.', 'the device is not compliant', claims],
    [400, 'interaction_required', 53001, 'Device is not in required device state: not joined.', 'the device is not joined', claims],
    [400, 'invalid_grant', 53002, 'Application used is not an approved application for Conditional Access.', 'policy does not approve', claims],
    [400, 'interaction_required', 53003, 'Access has been blocked by Conditional Access policies.', 'conditional access policy blocks the token', { ...claims, suberror: 'message_only' }],
    [400, 'invalid_grant', 53004, 'User needs to complete multi-factor authentication registration process before accessing this content.', 'from a trusted location'],
    [400, 'interaction_required', 50158, 'External security challenge not satisfied.', 'an external challenge', claims],
    [400, 'interaction_required', 50131, 'Device is not in required device state.', '(AADSTS50131,'],
    [400, 'invalid_grant', 50089, 'Authentication failed due to flow token expired.', '(AADSTS50089,', claims],
    [400, 'invalid_grant', [50158, 50076], 'Several at once.', 'multi-factor authentication is required (AADSTS50158, AADSTS50076,', claims],
    [400, 'invalid_grant', 70043, 'The refresh token has expired or is invalid due to sign-in frequency checks by conditional access.', 'older than the tenant allows', claims],
    [400, 'something_new', 50999, 'Something new.', '(AADSTS50999,', claims],
  ]),
  ...rows('exchange_denied', [
    [400, 'invalid_grant', 65001, "The user or administrator has not consented to use the application with ID 'us' named 'Proxy'.", 'consent is missing to api://backend/.default; an administrator does at https://login.example/contoso.example/adminconsent?client_id=us', { suberror: 'consent_required' }],
    [400, 'interaction_required', 65001, 'The user or administrator has not consented.', 'consent is missing to', claims],
    [400, 'invalid_grant', 90094, 'Admin consent is required.', 'administrator consent is missing to api://backend'],
    [400, 'invalid_grant', 50105, "Your administrator has configured the application Backend ('…') to block users unless they are specifically granted access.", 'the user is not assigned'],
    [400, 'access_denied', 999_999, 'Denied.', 'answered 400 access_denied (AADSTS999999,'],
    [400, 'invalid_request', 50027, 'JWT token is invalid or malformed.', 'answered 400 invalid_request (AADSTS50027,'],
    [400, 'unauthorized_client', 700_051, 'Response type is not enabled for the application.', 'answered 400 unauthorized_client'],
  ]),
  ...rows('not_a_user_token', [
    [400, 'invalid_grant', 7000114, 'Application is not allowed to make application on-behalf-of calls.', "it is not a user's token"],
    [400, 'invalid_request', 7000114, 'Application is not allowed to make application on-behalf-of calls.', "it is not a user's token", claims],
  ]),
  ...rows('invalid_token', [
    [400, 'invalid_grant', 70043, 'The refresh token has expired due to sign-in frequency checks by conditional access.', 'older than the tenant allows', { suberror: 'bad_token' }],
    [400, 'invalid_grant', 700082, 'The refresh token has expired due to inactivity.', 'expired because it was not used'],
    [400, 'invalid_grant', 50173, 'The provided grant has expired due to it being revoked, a fresh auth token is needed.', 'the password was changed'],
    [400, 'invalid_grant', 70008, 'The provided authorization code or refresh token has expired due to inactivity.', 'the login has expired'],
    [400, 'invalid_grant', 500133, 'Assertion is not within its valid time range. Ensure that the access token is not expired.', 'the token has expired'],
    [400, 'invalid_grant', 50013, 'Assertion failed signature validation.', 'the token is not a valid assertion'],
    [400, 'invalid_grant', 50057, 'The user account is disabled.', 'answered 400 invalid_grant (AADSTS50057,'],
  ]),
  ...rows('config_error', [
    [401, 'invalid_client', 7000215, "Invalid client secret provided. Ensure the secret being sent in the request is the client secret value, not the client secret ID, for a secret added to app 'us'.", 'the client secret is wrong'],
    [401, 'invalid_client', 7000222, 'The provided client secret keys for app are expired.', 'the client secret has expired'],
    [401, 'invalid_client', 7000218, "The request body must contain the following parameter: 'client_assertion' or 'client_secret'.", 'requires client authentication'],
    [400, 'unauthorized_client', 700016, "Application with identifier 'us' was not found in the directory 'Contoso'.", 'no application with this client ID'],
    [400, 'unauthorized_client', 7000112, 'Application is disabled.', 'is disabled in the tenant'],
    [401, 'invalid_client', 700027, 'The certificate with identifier used to sign the client assertion is not registered on application.', 'is not registered with the application'],
    [401, 'invalid_client', 700024, 'Client assertion is not within its valid time range.', 'compare clocks'],
    [400, 'invalid_request', 70021, 'No matching federated identity record found for presented assertion.', 'no federated credential'],
    [401, 'invalid_client', 700211, 'No matching federated identity record found for presented assertion issuer.', 'the issuer of the token in the file'],
    [401, 'invalid_client', 700213, 'No matching federated identity record found for presented assertion subject.', 'the subject of the token in the file'],
    [400, 'invalid_request', 90002, "Tenant 'contoso.example' not found.", 'the tenant does not exist'],
    [400, 'invalid_resource', 500011, 'The resource principal named api://backend was not found in the tenant named Contoso.', 'does not have this resource'],
    [400, 'invalid_grant', 500011, 'The resource principal named api://backend was not found.', 'does not have this resource', claims],
    [400, 'invalid_resource', 50001, 'The resource is disabled or does not exist.', 'does not have this resource'],
    [400, 'invalid_resource', 650_052, 'The app is trying to access a service that your organization lacks a service principal for.', 'answered 400 invalid_resource'],
    [400, 'invalid_request', 28000, 'Provided value for the input parameter scope is not valid because it contains more than one resource.', 'more than one resource'],
    [400, 'invalid_scope', 70011, 'The provided value for the input parameter scope is not valid.', 'the scopes are not valid'],
    [400, 'invalid_grant', 500131, 'Assertion audience does not match the Client app presenting the assertion.', 'issued for a different application'],
    [400, 'invalid_request', 240002, "Input id_token cannot be used as 'urn:ietf:params:oauth:grant-type:jwt-bearer' grant.", 'an ID token was sent'],
    [400, 'unsupported_grant_type', 70003, 'The app requested an unsupported grant type.', 'unsupported_grant_type'],
    [400, 'interaction_required', [65001, 7000222], 'Two at once: ours first.', 'the client secret has expired', claims],
  ]),
  ...rows('identity_provider_unavailable', [
    [429, 'temporarily_unavailable', 90055, 'The request was throttled.', 'returned 429'],
    [503, 'temporarily_unavailable', 90033, 'A transient error has occurred. Please try again.', 'returned 503'],
    [500, 'server_error', 90006, 'External server retryable error.', 'returned 500'],
    [400, 'temporarily_unavailable', 90033, 'A transient error has occurred. Please try again.', 'answered 400 temporarily_unavailable', claims],
    [400, 'server_error', 7000215, 'It is busy, whatever else it says.', 'answered 400 server_error'],
    [503, 'invalid_client', 7000222, 'It is busy, whatever else it says.', 'returned 503'],
  ]),
  ...rows('exchange_failed', [
    [400, 'something_new', 50999, 'Something new.', 'answered 400 something_new (AADSTS50999,'],
  ]),
]
