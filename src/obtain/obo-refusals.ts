import { type ChallengeHint, Failure, FAILURES, type FailureCode, type OutboundResponse } from '../core/index.ts'
import { readJsonObject } from '../http/index.ts'
import { exchangeFailure } from '../oauth/index.ts'
import type { JudgeError } from './token-exchange-response.ts'

/** A refused token is not shown again for so long; the next token of the caller is. */
const REFUSED_MS = 10 * 60_000
/** More would not fit into a header that clients take. */
const MAX_CLAIMS = 4096
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
]
const NO_CONSENT: ReadonlySet<number> = new Set([65001, 90094])
/** What is judged before claims are looked for: no login mends it. */
const BEFORE_CLAIMS: ReadonlySet<FailureCode> = new Set(['config_error', 'exchange_denied', 'not_a_user_token'])

/** What was asked, for the words about a refusal. */
export interface OboRequest {
  readonly scope: string
  readonly authorizationUri: string
  /** Where an administrator consents. */
  readonly consentUrl: string
}

interface EntraError {
  readonly codes: readonly number[]
  /** The JSON object that a new login has to ask for. */
  readonly claims: string | undefined
  /** Codes and identifiers, by which the tenant's log is searched. */
  readonly traces: string
}

/** What of an error's members can be believed: numbers, identifiers, and claims that are a JSON object. */
function readError({ body }: Pick<OutboundResponse, 'body'>): EntraError {
  const members = readJsonObject(body) ?? {}
  const { error_codes: listed, error_description: text, claims, trace_id: trace, correlation_id: correlation } = members
  const inText = typeof text === 'string' ? CODE_IN_TEXT.exec(text)?.[1] : undefined
  const codes = Array.isArray(listed)
    ? listed.slice(0, MAX_CODES).filter((code): code is number => Number.isSafeInteger(code) && Number(code) > 0)
    : []
  const all = codes.length > 0 || inText === undefined ? codes : [Number(inText)]
  const ids = Object.entries({ trace_id: trace, correlation_id: correlation }).flatMap(([name, id]) =>
    typeof id === 'string' && ID.test(id) ? [`${name} ${id}`] : [],
  )
  return {
    codes: all,
    claims: typeof claims === 'string' && isClaims(claims) ? claims : undefined,
    traces: [...all.map((code) => `AADSTS${code}`), ...ids].join(', '),
  }
}

const isClaims = (text: string): boolean => text.length <= MAX_CLAIMS && readJsonObject(Buffer.from(text)) !== undefined

/**
 * What an error answer of Entra ID to an on-behalf-of request means (decisions §3.10). A refusal that is about the caller lasts
 * for ten minutes, until the caller comes with another token. The detail names the code, what it stands for, and by what the
 * tenant's sign-in log is searched; nothing of the description.
 */
export function judgeOboError(response: OutboundResponse, asked: OboRequest): JudgeError {
  return (error, told) => {
    const busy = exchangeFailure(error)
    if (busy === 'identity_provider_unavailable') return busy
    const { codes, claims, traces } = readError(response)
    const known = CODES.find(([number]) => codes.includes(number))
    const isInteraction = claims !== undefined || error === 'interaction_required'
    const code =
      isInteraction && (known === undefined || !BEFORE_CLAIMS.has(known[1]))
        ? 'interaction_required'
        : (known?.[1] ?? busy)
    const words = [told]
    if (known !== undefined) words.push(`: ${known[2]}`)
    if (known !== undefined && NO_CONSENT.has(known[0]))
      words.push(` to ${asked.scope}; an administrator does at ${asked.consentUrl}`)
    if (traces !== '') words.push(` (${traces})`)
    const { fault } = FAILURES[code]
    return new Failure(code, {
      detail: words.join(''),
      ...(fault === 'caller_token' ? { challenge: challengeOf(code, claims, asked) } : {}),
      ...(fault === 'caller_token' || fault === 'caller_rights' ? { refusedForMs: REFUSED_MS } : {}),
    })
  }
}

function challengeOf(code: FailureCode, claims: string | undefined, { authorizationUri }: OboRequest): ChallengeHint {
  if (code !== 'interaction_required') return { error: 'invalid_token' }
  const encoded = claims === undefined ? undefined : Buffer.from(claims).toString('base64')
  return { error: 'invalid_token', stepUp: { authorizationUri, claims: encoded } }
}
