import { randomUUID } from 'node:crypto'
import { createLocalJWKSet, type JWTPayload, jwtVerify } from 'jose'
import type { Clock } from '../../src/core/index.ts'
import type { LabClient } from './clients.ts'
import type { ExchangePolicy } from './exchange.ts'
import type { SigningKeys } from './keys.ts'
import { type Form, OAuthRefusal } from './oauth-error.ts'

/** The requested token type of an identity assertion. */
export const ID_JAG_TYPE = 'urn:ietf:params:oauth:token-type:id-jag'

const ID_TOKEN_TYPE = 'urn:ietf:params:oauth:token-type:id_token'
const TTL_SECONDS = 300

/** Members of the ID token that the assertion carries on. */
const CARRIED = ['groups', 'email', 'name', 'auth_time', 'acr', 'amr']

export interface AssertionDeps {
  readonly issuer: () => string
  readonly keys: SigningKeys
  readonly clock: Clock
  readonly policy: ExchangePolicy
}

/**
 * Answers a token exchange for an identity assertion (draft-ietf-oauth-identity-assertion-authz-grant §4.3): a client with a
 * secret, an ID token that was made for that very client, an authorization server that it may go to. The assertion names the
 * client as it is known there. Throws `invalid_request`, `invalid_grant`, `invalid_target`, `unauthorized_client`, `access_denied`.
 */
export async function identityAssertion(
  form: Form,
  client: LabClient,
  { issuer, keys, clock, policy }: AssertionDeps,
): Promise<Record<string, unknown>> {
  if (client.secret === undefined || client.assertsTo === undefined)
    throw new OAuthRefusal('unauthorized_client', 'this client gets no identity assertions')
  if (form.require('subject_token_type') !== ID_TOKEN_TYPE)
    throw new OAuthRefusal('invalid_request', 'subject_token_type must be that of an ID token')
  const audience = form.require('audience')
  const target = client.assertsTo.find((one) => one.audience === audience)
  if (target === undefined) throw new OAuthRefusal('invalid_target', 'this client may not go to this audience')
  const [resource, more] = form.all('resource')
  if (more !== undefined || (resource !== undefined && !URL.canParse(resource)))
    throw new OAuthRefusal('invalid_target', 'resource must be one URL')
  const said = await verified(form.require('subject_token'), client, { issuer, keys, clock })
  if (policy.deniedSubjects.includes(said.sub ?? ''))
    throw new OAuthRefusal('access_denied', 'no assertions are made for this subject', { status: 403 })

  const now = Math.floor(clock.now() / 1000)
  const scope = form.get('scope')
  const assertion = await keys.sign(
    {
      ...Object.fromEntries(CARRIED.filter((name) => name in said).map((name) => [name, said[name]])),
      iss: issuer(),
      sub: said.sub ?? '',
      aud: audience,
      client_id: target.clientId,
      jti: randomUUID(),
      iat: now,
      exp: now + TTL_SECONDS,
      ...(resource === undefined ? {} : { resource }),
      ...(scope === undefined ? {} : { scope }),
    },
    'oauth-id-jag+jwt',
  )
  return {
    access_token: assertion,
    issued_token_type: ID_JAG_TYPE,
    token_type: 'N_A',
    expires_in: TTL_SECONDS,
    ...(scope === undefined ? {} : { scope }),
  }
}

/** Claims of a valid ID token of this provider for this client. Throws `invalid_grant`. */
async function verified(
  token: string,
  client: LabClient,
  { issuer, keys, clock }: Pick<AssertionDeps, 'issuer' | 'keys' | 'clock'>,
): Promise<JWTPayload> {
  try {
    const { payload } = await jwtVerify(token, createLocalJWKSet(keys.published()), {
      issuer: issuer(),
      audience: client.id,
      typ: 'JWT',
      algorithms: ['RS256', 'ES256'],
      requiredClaims: ['sub', 'iat', 'exp'],
      currentDate: new Date(clock.now()),
    })
    return payload
  } catch {
    throw new OAuthRefusal('invalid_grant', 'subject_token is no ID token of this client that is good now')
  }
}
