import { Failure, type Outbound, type OutboundResponse } from '../core/index.ts'
import {
  askTokenEndpoint,
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
export interface Grant {
  readonly url: string
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

/** A form for one of the endpoints at which we are a client. */
export type ClientPost = (post: Pick<Grant, 'url' | 'form' | 'secretInBody' | 'endsAtMs'>) => Promise<OutboundResponse>

/** An endpoint of an upstream as one client sees it. */
export function createClientPost(client: UpstreamClient, outbound: Outbound, where: string): ClientPost {
  return async ({ url, form, secretInBody, endsAtMs }) => {
    const known = await (endsAtMs === undefined ? client.current() : inTime(client.current(), endsAtMs, where))
    const shown = known.authentication(secretInBody === true)
    let response: OutboundResponse
    try {
      const headers = { 'user-agent': 'mcp-extauth' }
      const ends = endsAtMs === undefined ? {} : { endsAtMs }
      response = await askTokenEndpoint({ outbound, client: shown }, { url, form, headers, ...ends })
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
