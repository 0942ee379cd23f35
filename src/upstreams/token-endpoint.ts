import type { MonotonicMs, Outbound, OutboundResponse, Secret } from '../core/index.ts'
import {
  askTokenEndpoint,
  type ClientEndpoint,
  CODE_GRANT,
  isClientRefused,
  postRefresh,
  readTokenResponse,
  REFRESH_GRANT,
  serviceOf,
  type TokenResponse,
  type TokenResponseMapping,
} from '../oauth/index.ts'
import type { IdentityFromToken } from '../resources/index.ts'
import { type Connections, inTime, unanswered } from './connection.ts'
import type { UpstreamDeps } from './deps.ts'
import { readTokenIdentity, type TokenIdentity } from './token-identity.ts'
import type { UpstreamClient } from './upstream-client.ts'

type Form = readonly (readonly [string, string])[]

/** The token endpoint and its deadline. */
export interface TokenEndpointAt extends ClientEndpoint {
  /** The metadata list only authentication in the body. */
  readonly secretInBody?: boolean
  /** As of an `OutboundRequest`. */
  readonly endsAtMs?: MonotonicMs
  /** Further parameters of the form. */
  readonly more?: Form
}

/** A token request: for a code, or for a refresh token with its granted scopes. */
export type UpstreamGrant = TokenEndpointAt &
  (
    | { readonly step: 'code'; readonly form: Form }
    | { readonly step: 'refresh'; readonly refreshToken: Secret; readonly scopes: readonly string[] }
  )

/** Sends a token request. Throws `Failure` (see `readTokenResponse` of `oauth`). */
export type TokenEndpoint = (grant: UpstreamGrant) => Promise<UpstreamAnswer>

/** A token response and the user it identifies. */
export interface UpstreamAnswer extends TokenResponse {
  /** Identity in a code's response, where configured. */
  readonly identity: TokenIdentity | undefined
}

/** Paths of a token response's fields; absent: RFC 6749 §5.1, without user. */
export interface AnswerPaths {
  readonly tokenResponseMapping?: TokenResponseMapping | undefined
  readonly identityFromToken?: IdentityFromToken | undefined
}

/**
 * A form for an endpoint with client authentication. `url` and `issuer` are those of the token endpoint, for
 * assertions.
 */
export type ClientPost = (
  post: TokenEndpointAt & {
    readonly form: Form
    /** The endpoint. Default: the token endpoint. */
    readonly to?: string
  },
) => Promise<OutboundResponse>

/** An authenticated endpoint of an upstream. */
export function createClientPost(client: UpstreamClient, outbound: Outbound, where: string): ClientPost {
  return async ({ url, issuer, form, more = [], secretInBody, to = url, endsAtMs }) => {
    const known = await (endsAtMs === undefined ? client.current() : inTime(client.current(), endsAtMs, where))
    const { authenticate, secrets } = known.authentication(secretInBody === true)
    // The audience of assertions is always the server or its token endpoint.
    const shown = { authenticate: () => authenticate({ url, issuer }), secrets }
    let response: OutboundResponse
    try {
      const headers = { 'user-agent': 'mcp-extauth' }
      const ends = endsAtMs === undefined ? {} : { endsAtMs }
      response = await askTokenEndpoint(
        { outbound, client: shown },
        { url: to, form: [...form, ...more], headers, ...ends },
      )
    } catch (error) {
      throw unanswered(error, where)
    }
    if (client.refused !== undefined && isClientRefused(response)) await client.refused(known)
    return response
  }
}

const SERVICE = serviceOf('token endpoint')

/** The token endpoint of an upstream. */
export function createTokenEndpoint(
  client: UpstreamClient,
  { tokenResponseMapping: mapping, identityFromToken }: AnswerPaths,
  connections: Connections,
  { clock }: UpstreamDeps,
): TokenEndpoint {
  const ask = createClientPost(client, connections.tokens, 'token endpoint')
  return async (grant) => {
    // Lifetimes count from the request, to include the response's latency.
    const sentAtMs = clock.now()
    const response =
      grant.step === 'code'
        ? await ask(grant)
        : await postRefresh((form) => ask({ ...grant, form }), grant.refreshToken, grant.scopes)
    const { url, step } = grant
    const rules = step === 'code' ? CODE_GRANT : REFRESH_GRANT
    const context = { url, sentAtMs, nowMs: clock.now(), service: SERVICE, grant: rules, mapping }
    const read = readTokenResponse(response, context)
    const isAsked = identityFromToken !== undefined && step === 'code'
    return { ...read, identity: isAsked ? readTokenIdentity(read.members, identityFromToken) : undefined }
  }
}
