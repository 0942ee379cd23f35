import type { Outbound, OutboundRequest, OutboundResponse } from '../core/index.ts'
import type { ClientEndpoint, OAuthClient } from './client-settings.ts'
import { type FormPost, formRequest } from './form-post.ts'
import { errorOf, meantBy, refusesClient } from './refusals.ts'

/** A client at a token endpoint or similar endpoint. */
export interface TokenEndpointClient {
  readonly outbound: Outbound
  readonly client: Pick<OAuthClient, 'authenticate' | 'secrets'>
}

/** True when a response rejects the client's credentials, including a 401 without error (RFC 6749 §5.2). */
export function isClientRefused(response: OutboundResponse): boolean {
  const error = errorOf(response)
  return error === undefined ? response.status === 401 : refusesClient(meantBy(error, response.status))
}

const NO_TOKEN_ENDPOINT: ReadonlySet<number> = new Set([404, 405, 410, 415])

/** Statuses of a server without a token endpoint at this URL: a wrong URL or realm (decisions §5). */
export const isNoTokenEndpoint = ({ status }: Pick<OutboundResponse, 'status'>): boolean =>
  NO_TOKEN_ENDPOINT.has(status)

/**
 * Sends a request to a token endpoint (RFC 6749 §3.2) as one client; a response with any status is returned. After a
 * rejection the credentials are reread; when they changed, the request is repeated once with new authentication,
 * since a client assertion is single-use. Throws `OutboundError` and the errors of `authenticate`.
 */
export async function askTokenEndpoint(
  { outbound, client }: TokenEndpointClient,
  post: FormPost & Pick<ClientEndpoint, 'issuer'> & { readonly form: readonly (readonly [string, string])[] },
): Promise<OutboundResponse> {
  const build = async (): Promise<OutboundRequest> => {
    const shown = await client.authenticate(post)
    return formRequest({
      ...post,
      form: [...post.form, ...shown.form],
      headers: { ...post.headers, ...shown.headers },
    })
  }
  const send = async () => outbound.request({ ...(await build()), again: build })
  const used = client.secrets.map((secret) => secret.current())
  const response = await send()
  if (used.length === 0 || !isClientRefused(response)) return response
  await Promise.all(client.secrets.map((secret) => secret.refresh()))
  const isSame = client.secrets.every((secret, index) => used[index]?.equals(secret.current()) === true)
  return isSame ? response : send()
}
