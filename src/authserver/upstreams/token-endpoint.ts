import { Failure, type OutboundResponse, type Secret } from '../../core/index.ts'
import { basicCredentials, postForm } from '../../net/index.ts'
import type { SecretRef } from '../../fields/index.ts'
import { type Connections, unanswered } from './connection.ts'
import type { UpstreamDeps } from './deps.ts'
import { refusesClient, type Step } from './refusal.ts'
import { errorOf, readTokenResponse, type TokenResponse, type TokenResponseMapping } from './token-response.ts'

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
}

/** Asks a token endpoint. Throws `Failure` (see `refusal.ts`, `token-response.ts`). */
export type TokenEndpoint = (grant: Grant) => Promise<TokenResponse>

const isClientRefused = (response: OutboundResponse): boolean => {
  const error = errorOf(response)
  return error === undefined ? response.status === 401 : refusesClient(error)
}

/**
 * The token endpoint of an upstream as one client sees it: HTTP Basic with id and secret, form-encoded first (RFC 6749
 * §2.3.1), or `client_id` in the body without a secret. A secret that is refused is read again; when it has changed, the
 * request is repeated once.
 */
export function createTokenEndpoint(
  { clientId, clientSecretRef }: UpstreamClient,
  mapping: TokenResponseMapping | undefined,
  connections: Connections,
  { clock, secrets }: UpstreamDeps,
): TokenEndpoint {
  const secret = clientSecretRef === undefined ? undefined : secrets.handle(clientSecretRef)

  const post = async ({ url, form, secretInBody }: Grant, value: Secret | undefined): Promise<OutboundResponse> => {
    const id = ['client_id', clientId] as const
    const isBasic = value !== undefined && secretInBody !== true
    const client = value === undefined ? [id] : isBasic ? [] : [id, ['client_secret', value.reveal()] as const]
    const headers = {
      'user-agent': 'mcp-extauth',
      ...(isBasic ? { authorization: basicCredentials(clientId, value) } : {}),
    }
    try {
      return await postForm(connections.tokens, { url, form: [...form, ...client], headers })
    } catch (error) {
      throw unanswered(error, 'token endpoint')
    }
  }

  /** With the secret of now; once more with the next one when this one is no longer the right one. */
  const ask = async (grant: Grant): Promise<OutboundResponse> => {
    const used = secret?.current()
    const response = await post(grant, used)
    if (secret === undefined || used === undefined || !isClientRefused(response)) return response
    await secret.refresh()
    const now = secret.current()
    return now.equals(used) ? response : post(grant, now)
  }

  return async (grant) => {
    // Lifetimes count from here: the answer's way back is part of them.
    const sentAtMs = clock.now()
    const response = await ask(grant)
    const read = readTokenResponse(response, { step: grant.step, mapping, sentAtMs, nowMs: clock.now() })
    if (read.expiresAtMs !== undefined && read.expiresAtMs <= clock.now()) {
      throw new Failure('identity_provider_error', { detail: 'token endpoint: the token had expired when it arrived' })
    }
    return read
  }
}
