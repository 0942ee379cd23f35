import { type AuthenticatedCaller, Failure, type OutboundResponse, type Secret } from '../core/index.ts'
import { callerGrant, exchangeFailure, ID_JAG, jwtTypeOf, shapeOf, unusableToken } from '../oauth/index.ts'
import { tokenTypeUrn } from '../resources/index.ts'
import {
  type ExchangeContext,
  type ExchangedToken,
  readBearerToken,
  readSubjectExchange,
  TOKEN_ENDPOINT,
  type TokenContext,
} from './token-exchange-response.ts'

/** The expected contents of an identity assertion. */
export interface WantedAssertion {
  /** Issuer of the server that receives it. */
  readonly audience: string
  /** The proxy's client id there. */
  readonly clientId: string | undefined
  readonly resource: string | undefined
}

/** RFC 8693 §3 and draft-ietf-oauth-identity-assertion-authz-grant §4.3.2. */
export const ID_JAG_TYPE = tokenTypeUrn('id-jag')

/** A string, alone or in an array of one. */
const oneOf = (value: unknown): unknown =>
  Array.isArray(value) && value.length === 1 ? (value as readonly unknown[])[0] : value

/**
 * The identity assertion in the response to a token exchange, with its expiry (decisions §3.11). Only its type and target
 * are checked: the server that receives it verifies the signature. Throws `exchange_failed`, which names the wrong field or
 * the cause of an error response.
 */
export function readAssertion(
  response: OutboundResponse,
  context: ExchangeContext,
  wanted: WantedAssertion,
): ExchangedToken {
  const malformed = (why: string): Failure => unusableToken(context.service ?? TOKEN_ENDPOINT, why)
  const isIdJag = (type: unknown): boolean => type === ID_JAG_TYPE
  const { token, expiresAtMs } = readSubjectExchange(response, context, ['N_A'], isIdJag)
  const text = token.reveal()
  const shape = shapeOf(text)
  if (shape.kind !== 'jwt' || text.endsWith('.')) throw malformed('access_token is not a signed JWT')
  const { header, payload } = shape.jwt
  const { typ } = header
  if (typeof typ !== 'string' || jwtTypeOf(typ) !== ID_JAG) throw malformed(`typ of the assertion is not ${ID_JAG}`)
  if (oneOf(payload['aud']) !== wanted.audience) throw malformed('aud of the assertion must be targetAudience only')
  if (payload['client_id'] !== wanted.clientId)
    throw malformed('client_id of the assertion is not the configured client')
  if (wanted.resource !== undefined && oneOf(payload['resource']) !== wanted.resource)
    throw malformed('resource of the assertion is not targetResource')
  const { exp } = payload
  if (typeof exp !== 'number' || !(exp * 1_000 > context.nowMs))
    throw malformed('exp of the assertion is not in the future')
  return { token, expiresAtMs: Math.min(expiresAtMs, exp * 1_000) }
}

const ASSERTION_GRANT = callerGrant((error) => {
  const code = exchangeFailure(error)
  return code === 'invalid_token' ? 'exchange_denied' : code
})

/**
 * Reads the access token for an assertion, with its expiry (RFC 7523 §2.1, RFC 6749 §5.1). A new login does not fix a
 * rejected assertion: no error is a 401, except that of RFC 9470.
 */
export function readGrantedToken(response: OutboundResponse, context: TokenContext): ExchangedToken {
  return readBearerToken(response, context, ASSERTION_GRANT)
}

/** Checks whether a caller's token may be an ID token of this client, by claims. Throws `no_id_token`. */
export function checkIdTokenClaims(
  { claims, format, subject }: Pick<AuthenticatedCaller, 'claims' | 'format' | 'subject'>,
  clientId: string | undefined,
): void {
  const { aud, typ } = claims
  const audiences: readonly unknown[] = Array.isArray(aud) ? aud : [aud]
  if (format !== 'jwt') throw notAnIdToken('it is opaque')
  if (clientId === undefined || !audiences.includes(clientId))
    throw notAnIdToken('its aud does not contain idpClientId')
  if (subject === '') throw notAnIdToken('it has no sub')
  // RFC 9068 §2.2.3 and Entra ID: these claims mark an access token.
  const scope = ['scope', 'scp'].find((name) => claims[name] !== undefined && claims[name] !== null)
  if (scope !== undefined) throw notAnIdToken(`it is an access token (it has the claim ${scope})`)
  // The only mark of Keycloak's access tokens.
  if (typ !== undefined && typ !== 'ID') throw notAnIdToken('its claim typ is not ID')
}

/** Checks the header. Throws likewise. */
export function checkIdTokenHeader(token: Secret): void {
  const shape = shapeOf(token.reveal())
  const typ = shape.kind === 'jwt' ? shape.jwt.header['typ'] : undefined
  if (typ !== undefined && (typeof typ !== 'string' || jwtTypeOf(typ) !== 'jwt'))
    throw notAnIdToken('its typ marks another kind of token')
}

const notAnIdToken = (why: string): Failure =>
  new Failure('no_id_token', { detail: `the caller's token is not an ID token for the identity provider: ${why}` })
