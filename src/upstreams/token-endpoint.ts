import { Failure, type Clock, type Outbound, type OutboundResponse, type Secrets } from '../core/index.ts'
import type { SecretRef } from '../fields/index.ts'
import {
  askTokenEndpoint,
  createClientAuthentication,
  membersOf,
  type Step,
  type TokenResponse,
  type TokenResponseMapping,
  tokensIn,
} from '../oauth/index.ts'
import type { IdentityFromToken } from '../resources/index.ts'
import { type Connections, unanswered } from './connection.ts'
import type { UpstreamDeps } from './deps.ts'
import { readTokenIdentity, type TokenIdentity } from './token-identity.ts'

/** Us, as a client of the upstream's. */
export interface UpstreamClient {
  readonly clientId: string
  /** Absent: a public client, held by PKCE alone. */
  readonly clientSecretRef?: SecretRef | undefined
}

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

/**
 * An endpoint of an upstream as one client sees it: HTTP Basic with id and secret, both in the body where only that
 * is on offer, or `client_id` in the body without a secret.
 */
export function createClientPost(
  { clientId, clientSecretRef }: UpstreamClient,
  outbound: Outbound,
  { where, clock, secrets }: { readonly where: string; readonly clock: Clock; readonly secrets: Secrets },
): ClientPost {
  const secret = clientSecretRef === undefined ? undefined : secrets.handle(clientSecretRef)
  const clientWith = (method: 'clientSecretBasic' | 'clientSecretPost') =>
    createClientAuthentication(
      secret === undefined ? { method: 'none', clientId } : { method, clientId, secret },
      clock,
    )
  const [basic, inBody] = [clientWith('clientSecretBasic'), clientWith('clientSecretPost')]

  return async ({ url, form, secretInBody, endsAtMs }) => {
    const client = secretInBody === true ? inBody : basic
    try {
      const headers = { 'user-agent': 'mcp-extauth' }
      const post = { url, form, headers, ...(endsAtMs === undefined ? {} : { endsAtMs }) }
      return await askTokenEndpoint({ outbound, client }, post)
    } catch (error) {
      throw unanswered(error, where)
    }
  }
}

/** The token endpoint of an upstream. */
export function createTokenEndpoint(
  client: UpstreamClient,
  { tokenResponseMapping: mapping, identityFromToken }: AnswerPaths,
  connections: Connections,
  { clock, secrets }: UpstreamDeps,
): TokenEndpoint {
  const ask = createClientPost(client, connections.tokens, { where: 'token endpoint', clock, secrets })
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
