import type { Readable } from 'node:stream'
import {
  type EndpointAnswer,
  type EndpointCredentials,
  type EndpointRequest,
  type McpEndpoint,
  type Secret,
  SecretMask,
} from '../core/index.ts'

/** Token renewals per request: one for a newer token, one for more scopes. */
const MAX_RENEWALS = 2
/** Bytes of a discarded response to read, so that its connection can be reused. */
const DISCARDED_BYTES = 64 * 1024

/** Sends requests to the server, each with the current token. */
export class Channel {
  readonly #endpoint: McpEndpoint
  readonly #credentials: EndpointCredentials
  readonly #secrets: readonly Secret[]
  #token: Secret | undefined

  /** `secrets`: further secrets in each request. */
  constructor(endpoint: McpEndpoint, credentials: EndpointCredentials, secrets: readonly Secret[] = []) {
    this.#endpoint = endpoint
    this.#credentials = credentials
    this.#secrets = secrets
  }

  /** Masks the secrets of requests in text of the server. */
  masked(text: string): string {
    const mask = new SecretMask()
    for (const secret of this.#secrets) mask.add(secret.reveal())
    if (this.#token !== undefined) mask.add(this.#token.reveal())
    return mask.maskIn(text)
  }

  /**
   * Sends a request, again with a new token if the first is rejected. Rejects like `McpEndpoint.send`, and with
   * `CredentialRefusal` if no token is available.
   */
  async send(request: EndpointRequest): Promise<EndpointAnswer> {
    for (let renewals = 0; ; renewals++) {
      const token = await this.#credentials.current()
      this.#token = token
      const answer = await this.#endpoint.send({ ...request, headers: withToken(request.headers, token) })
      const challenge = challengeOf(answer)
      if (challenge === undefined || renewals === MAX_RENEWALS) return answer
      discard(answer.body)
      // No user waits for a background stream.
      await this.#credentials.refused(token, challenge.text, request.method === 'POST')
      request.signal.throwIfAborted()
    }
  }
}

const withToken = (headers: EndpointRequest['headers'], token: Secret | undefined): EndpointRequest['headers'] =>
  token === undefined ? headers : { ...headers, authorization: `Bearer ${token.reveal()}` }

/** Challenge of a rejected token (RFC 6750 §3); undefined for other responses. */
function challengeOf({ status, headers }: EndpointAnswer): { readonly text: string | undefined } | undefined {
  const text = [headers['www-authenticate'] ?? []].flat().join(', ')
  if (status === 401) return { text: text === '' ? undefined : text }
  return status === 403 && /\berror="?insufficient_scope\b/.test(text) ? { text } : undefined
}

/** Discards a body after reading a little of it. */
export function discard(body: Readable): void {
  let bytes = 0
  body.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > DISCARDED_BYTES) body.destroy()
  })
}
