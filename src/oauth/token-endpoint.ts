import type { Outbound, OutboundRequest, OutboundResponse, SecretHandle } from '../core/index.ts'
import type { ClientAuthentication } from './client-authentication.ts'
import { type FormPost, formRequest } from './form-post.ts'
import { errorOf, refusesClient } from './refusals.ts'

/** One client at a token endpoint or its like. */
export interface TokenEndpointClient {
  readonly outbound: Outbound
  /** See `createClientAuthentication`. */
  readonly authenticate: (endpointUrl: string) => Promise<ClientAuthentication>
  /** What it authenticates with; undefined for a public client. */
  readonly secret: SecretHandle | undefined
}

/** True when an answer is about our client id or secret; a 401 without a word is (RFC 6749 §5.2). */
function isClientRefused(response: OutboundResponse): boolean {
  const error = errorOf(response)
  return error === undefined ? response.status === 401 : refusesClient(error)
}

const NO_TOKEN_ENDPOINT: ReadonlySet<number> = new Set([404, 405, 410, 415])

/** What a server answers where it has no token endpoint, whatever the body says: a wrong URL or realm (decisions §5). */
export const isNoTokenEndpoint = ({ status }: Pick<OutboundResponse, 'status'>): boolean =>
  NO_TOKEN_ENDPOINT.has(status)

/**
 * Asks a token endpoint (RFC 6749 §3.2) as one client; an answer with any status is returned. A secret that is refused is
 * read again, and when it has changed, the request is repeated once. Authentication is made anew for whatever is sent
 * again: a client assertion is good for one use. Throws `OutboundError`, and what `authenticate` throws.
 */
export async function askTokenEndpoint(
  { outbound, authenticate, secret }: TokenEndpointClient,
  post: FormPost & { readonly form: readonly (readonly [string, string])[] },
): Promise<OutboundResponse> {
  const build = async (): Promise<OutboundRequest> => {
    const client = await authenticate(post.url)
    return formRequest({
      ...post,
      form: [...post.form, ...client.form],
      headers: { ...post.headers, ...client.headers },
    })
  }
  const send = async () => outbound.request({ ...(await build()), again: build })
  const used = secret?.current()
  const response = await send()
  if (secret === undefined || used === undefined || !isClientRefused(response)) return response
  await secret.refresh()
  return secret.current().equals(used) ? response : send()
}
