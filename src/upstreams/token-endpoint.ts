import { Failure, type Outbound, type OutboundResponse } from '../core/index.ts'
import {
  askTokenEndpoint,
  type ClientEndpoint,
  isClientRefused,
  membersOf,
  type Step,
  type TokenResponse,
  type TokenResponseMapping,
  tokensIn,
} from '../oauth/index.ts'
import type { IdentityFromToken } from '../resources/index.ts'
import { type Connections, inTime, unanswered } from './connection.ts'
import type { UpstreamDeps } from './deps.ts'
import { readTokenIdentity, type TokenIdentity } from './token-identity.ts'
import type { UpstreamClient } from './upstream-client.ts'

/** One request to a token endpoint. */
export interface Grant extends ClientEndpoint {
  readonly step: Exclude<Step, 'authorize'>
  readonly form: readonly (readonly [string, string])[]
  /** The endpoint takes id and secret in the body only (its metadata say so). */
  readonly secretInBody?: boolean
  /** As of an `OutboundRequest`. */
  readonly endsAtMs?: number
}

/** Asks a token endpoint. Throws `Failure` (see `refusal` and `readTokenResponse` of `oauth`). */
export type TokenEndpoint = (grant: Grant) => Promise<UpstreamAnswer>

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
  post: Omit<Grant, 'step'> & {
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

/** The token endpoint of an upstream. */
export function createTokenEndpoint(
  client: UpstreamClient,
  { tokenResponseMapping: mapping, identityFromToken }: AnswerPaths,
  connections: Connections,
  { clock }: UpstreamDeps,
): TokenEndpoint {
  const ask = createClientPost(client, connections.tokens, 'token endpoint')
  return async (grant) => {
    // Lifetimes count from here: the answer's way back is part of them.
    const sentAtMs = clock.now()
    const response = await ask(grant)
    const { url, step } = grant
    const members = membersOf(response, { url, step, nowMs: clock.now() })
    const read = tokensIn(members, { mapping, sentAtMs })
    if (read.expiresAtMs !== undefined && read.expiresAtMs <= clock.now()) {
      throw new Failure('identity_provider_error', { detail: 'token endpoint: the token had expired when it arrived' })
    }
    const isAsked = identityFromToken !== undefined && step === 'code'
    return { ...read, identity: isAsked ? readTokenIdentity(members, identityFromToken) : undefined }
  }
}
