import type { JWTPayload } from 'jose'
import type { Clock } from '../../src/core/index.ts'
import type { LabClient } from './clients.ts'
import { type Form, OAuthRefusal } from './oauth-error.ts'
import type { Tokens } from './tokens.ts'

export const TOKEN_EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'

const TYPE = 'urn:ietf:params:oauth:token-type:'
const SUBJECT_TYPES = new Set([`${TYPE}access_token`, `${TYPE}id_token`, `${TYPE}jwt`])
const ISSUED_TYPES = new Set([`${TYPE}access_token`, `${TYPE}jwt`])

/** An exchanged token lives this long at most, in seconds, and never longer than its subject token. */
const MAX_TTL_SECONDS = 300

/** Members of the subject token that the exchanged token carries on. */
const CARRIED = ['groups', 'email', 'name', 'auth_time', 'acr']

export interface ExchangePolicy {
  /** Subjects for whom every exchange is refused with `access_denied`. */
  readonly deniedSubjects: readonly string[]
}

/**
 * Answers a token exchange (RFC 8693): an authenticated client with the right to it, a subject token of this issuer that
 * is good now, an audience that the client may ask for. Issues a JWT for that audience with `act` naming who acts.
 * Throws `invalid_request`, `invalid_target`, `invalid_scope`, `unauthorized_client`, `access_denied`.
 */
export async function exchange(
  form: Form,
  client: LabClient,
  deps: { readonly tokens: Tokens; readonly clock: Clock; readonly policy: ExchangePolicy },
): Promise<Record<string, unknown>> {
  if (!client.may.includes('exchange'))
    throw new OAuthRefusal('unauthorized_client', 'this client may not exchange tokens')
  const subjectToken = form.require('subject_token')
  const subjectType = form.require('subject_token_type')
  if (!SUBJECT_TYPES.has(subjectType)) throw new OAuthRefusal('invalid_request', 'subject_token_type is not supported')
  const issuedType = form.get('requested_token_type') ?? `${TYPE}access_token`
  if (!ISSUED_TYPES.has(issuedType)) {
    throw new OAuthRefusal('invalid_request', 'requested_token_type is not supported')
  }
  const audience = audienceOf(form, client)

  // RFC 8693 §2.2.2: a subject or actor token that is invalid for any reason is an invalid_request.
  const subject = await deps.tokens.verify(subjectToken)
  if (subject?.sub === undefined) throw new OAuthRefusal('invalid_request', 'subject_token is not valid')
  const actor = await actorOf(form, client, deps.tokens)
  if (deps.policy.deniedSubjects.includes(subject.sub)) {
    throw new OAuthRefusal('access_denied', 'no tokens are exchanged for this subject', { status: 403 })
  }

  const scope = form.get('scope')
  const left = Math.floor((subject.exp ?? 0) - deps.clock.now() / 1000)
  const ttlSeconds = Math.max(1, Math.min(MAX_TTL_SECONDS, left))
  const carried = Object.fromEntries(CARRIED.filter((name) => name in subject).map((name) => [name, subject[name]]))
  const accessToken = await deps.tokens.issue({
    subject: subject.sub,
    audience,
    ttlSeconds,
    exchanged: true,
    claims: { ...carried, client_id: client.id, act: actor, ...(scope === undefined ? {} : { scope }) },
  })
  return {
    access_token: accessToken,
    issued_token_type: issuedType,
    token_type: 'Bearer',
    expires_in: ttlSeconds,
    ...(scope === undefined ? {} : { scope }),
  }
}

function audienceOf(form: Form, client: LabClient): string[] {
  const asked = [form.get('audience'), ...form.all('resource')].filter((value) => value !== undefined)
  if (asked.length === 0) throw new OAuthRefusal('invalid_request', 'audience is missing')
  const refused = asked.find((value) => client.audiences?.includes(value) !== true)
  if (refused !== undefined) throw new OAuthRefusal('invalid_target', 'this client may not ask for this audience')
  return asked
}

/** The actor (RFC 8693 §4.1): the subject of the actor token, or the client itself. */
async function actorOf(form: Form, client: LabClient, tokens: Tokens): Promise<Pick<JWTPayload, 'sub'>> {
  const token = form.get('actor_token')
  const type = form.get('actor_token_type')
  if ((token === undefined) !== (type === undefined)) {
    throw new OAuthRefusal('invalid_request', 'actor_token and actor_token_type go together')
  }
  if (token === undefined) return { sub: client.id }
  const actor = await tokens.verify(token)
  if (actor?.sub === undefined) throw new OAuthRefusal('invalid_request', 'actor_token is not valid')
  return { sub: actor.sub }
}
