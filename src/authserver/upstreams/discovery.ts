import type { Claims, ClaimValue, Clock } from '../../core/index.ts'
import { type Connections, jsonAnswer, send, unusable } from './connection.ts'
import { ID_TOKEN_ALGORITHMS } from './id-token.ts'

/** What is used of an OpenID provider's metadata (OpenID Connect Discovery §3). */
export interface OidcMetadata {
  readonly authorizationEndpoint: string
  readonly tokenEndpoint: string
  readonly jwksUri: string
  readonly userInfoEndpoint: string | undefined
  /** What it signs ID tokens with, as far as we accept it; never empty. */
  readonly algorithms: readonly string[]
  /** Id and secret go into the body, because Basic is not on offer. */
  readonly secretInBody: boolean
  /** RFC 9207 §3. */
  readonly announcesIss: boolean
}

const WHERE = 'discovery document'
const LIFETIME_MS = 3_600_000
/** The provider can't be asked: the document from before serves, and this is when it is asked again. */
const PAUSE_MS = 30_000

const isList = (value: ClaimValue | undefined): value is readonly ClaimValue[] => Array.isArray(value)

function endpoint(document: Claims, name: string): string {
  const url = document[name]
  // The issuer is https, so whatever it names is: plain http would hand codes and tokens to who listens.
  if (typeof url !== 'string' || URL.parse(url)?.protocol !== 'https:') throw unusable(`${WHERE}: no https ${name}`)
  return url
}

function read(document: Claims, issuer: string): OidcMetadata {
  if (document['issuer'] !== issuer) throw unusable(`${WHERE}: it is for another issuer`)
  const announced = document['id_token_signing_alg_values_supported']
  const algorithms = isList(announced) ? ID_TOKEN_ALGORITHMS.filter((alg) => announced.includes(alg)) : ['RS256']
  if (algorithms.length === 0) throw unusable(`${WHERE}: no algorithm for ID tokens that is accepted`)
  const methods = document['token_endpoint_auth_methods_supported']
  return {
    authorizationEndpoint: endpoint(document, 'authorization_endpoint'),
    tokenEndpoint: endpoint(document, 'token_endpoint'),
    jwksUri: endpoint(document, 'jwks_uri'),
    userInfoEndpoint: document['userinfo_endpoint'] === undefined ? undefined : endpoint(document, 'userinfo_endpoint'),
    algorithms,
    secretInBody: isList(methods) && !methods.includes('client_secret_basic') && methods.includes('client_secret_post'),
    announcesIss: document['authorization_response_iss_parameter_supported'] === true,
  }
}

/**
 * The metadata of one OpenID provider, fetched when they are needed first and then once an hour; while that fails the ones
 * from before serve. The function it gives throws `identity_provider_unavailable` and `identity_provider_error`.
 */
export function createDiscovery(
  issuer: string,
  { documents }: Pick<Connections, 'documents'>,
  clock: Clock,
): () => Promise<OidcMetadata> {
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
  let known: OidcMetadata | undefined
  let untilMs = 0
  let flight: Promise<OidcMetadata> | undefined

  const fetchOnce = async (): Promise<OidcMetadata> => {
    try {
      const response = await send(documents, { method: 'GET', url, headers: { accept: 'application/json' } }, WHERE)
      known = read(jsonAnswer(response, WHERE, clock.now()), issuer)
      untilMs = clock.now() + LIFETIME_MS
    } catch (error) {
      if (known === undefined) throw error
      untilMs = clock.now() + PAUSE_MS
    }
    return known
  }

  return async () => {
    if (known !== undefined && clock.now() < untilMs) return known
    flight ??= fetchOnce().finally(() => (flight = undefined))
    return flight
  }
}
