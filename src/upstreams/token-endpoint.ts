import type { Outbound, OutboundResponse, Secret } from '../core/index.ts'
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

/** The token endpoint, and how long it may take. */
export interface TokenEndpointAt extends ClientEndpoint {
  /** The endpoint takes id and secret in the body only (its metadata say so). */
  readonly secretInBody?: boolean
  /** As of an `OutboundRequest`. */
  readonly endsAtMs?: number
}

/** One request to a token endpoint: for a code, or for a refresh token with the scopes that were granted with it. */
export type UpstreamGrant = TokenEndpointAt &
  (
    | { readonly step: 'code'; readonly form: Form }
    | { readonly step: 'refresh'; readonly refreshToken: Secret; readonly scopes: readonly string[] }
  )

/** Asks a token endpoint. Throws `Failure` (see `readTokenResponse` of `oauth`). */
export type TokenEndpoint = (grant: UpstreamGrant) => Promise<UpstreamAnswer>

/** What a token endpoint gave, and who it says that it is. */
export interface UpstreamAnswer extends TokenResponse {
  /** Of a code, where the configuration says that it is in the answer. */
  readonly identity: TokenIdentity | undefined
}

/** Where an answer has what is read of it; absent: RFC 6749 §5.1, and nothing about the user. */
export interface AnswerPaths {
  readonly tokenResponseMapping?: TokenResponseMapping | undefined
  readonly identityFromToken?: IdentityFromToken | undefined
}

/** A form for one of the endpoints at which we are a client. `url` and `issuer` are the token endpoint's, for assertions. */
export type ClientPost = (
  post: TokenEndpointAt & {
    readonly form: Form
    /** Where it goes. Default: the token endpoint. */
    readonly to?: string
  },
) => Promise<OutboundResponse>

/** An endpoint of an upstream as one client sees it. */
export function createClientPost(client: UpstreamClient, outbound: Outbound, where: string): ClientPost {
  return async ({ url, issuer, form, secretInBody, to = url, endsAtMs }) => {
    const known = await (endsAtMs === undefined ? client.current() : inTime(client.current(), endsAtMs, where))
    const { authenticate, secrets } = known.authentication(secretInBody === true)
    // Assertions are for the server and its token endpoint, whichever of its endpoints they are shown to.
    const shown = { authenticate: () => authenticate({ url, issuer }), secrets }
    let response: OutboundResponse
    try {
      const headers = { 'user-agent': 'mcp-extauth' }
      const ends = endsAtMs === undefined ? {} : { endsAtMs }
      response = await askTokenEndpoint({ outbound, client: shown }, { url: to, form, headers, ...ends })
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
    // Lifetimes count from here: the way back of the response is part of them.
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
