import type { Readable } from 'node:stream'
import {
  type EndpointAnswer,
  type EndpointCredentials,
  type EndpointRequest,
  type McpEndpoint,
  type Secret,
  SecretMask,
} from '../core/index.ts'

/** A refused token is replaced this often for one request: by a newer one, and by one with more scopes. */
const MAX_RENEWALS = 2
/** Bytes of an unwanted answer that are read so that its connection can be used again. */
const DISCARDED_BYTES = 64 * 1024

/** A way to the server on which each request has the token of its moment. */
export class Channel {
  readonly #endpoint: McpEndpoint
  readonly #credentials: EndpointCredentials
  readonly #secrets: readonly Secret[]
  #token: Secret | undefined

  /** `secrets`: what else each request carries. */
  constructor(endpoint: McpEndpoint, credentials: EndpointCredentials, secrets: readonly Secret[] = []) {
    this.#endpoint = endpoint
    this.#credentials = credentials
    this.#secrets = secrets
  }

  /** A text of the server without the secrets that requests carry. */
  masked(text: string): string {
    const mask = new SecretMask()
    for (const secret of this.#secrets) mask.add(secret.reveal())
    if (this.#token !== undefined) mask.add(this.#token.reveal())
    return mask.maskIn(text)
  }

  /**
   * Sends a request; where its token is refused, once more with the next one. Rejects as `McpEndpoint.send` does, and with
   * `CredentialRefusal` when there is no token to be had.
   */
  async send(request: EndpointRequest): Promise<EndpointAnswer> {
    for (let renewals = 0; ; renewals++) {
      const token = await this.#credentials.current()
      this.#token = token
      const answer = await this.#endpoint.send({ ...request, headers: withToken(request.headers, token) })
      const challenge = challengeOf(answer)
      if (challenge === undefined || renewals === MAX_RENEWALS) return answer
      discard(answer.body)
      // A stream in the background is nothing that anybody is waiting for.
      await this.#credentials.refused(token, challenge.text, request.method === 'POST')
      request.signal.throwIfAborted()
    }
  }
}

const withToken = (headers: EndpointRequest['headers'], token: Secret | undefined): EndpointRequest['headers'] =>
  token === undefined ? headers : { ...headers, authorization: `Bearer ${token.reveal()}` }

/** What a refusal of the token says (RFC 6750 §3); undefined for any other answer. */
function challengeOf({ status, headers }: EndpointAnswer): { readonly text: string | undefined } | undefined {
  const text = [headers['www-authenticate'] ?? []].flat().join(', ')
  if (status === 401) return { text: text === '' ? undefined : text }
  return status === 403 && /\berror="?insufficient_scope\b/.test(text) ? { text } : undefined
}

/** Reads away what nobody wants, a little of it. */
export function discard(body: Readable): void {
  let bytes = 0
  body.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > DISCARDED_BYTES) body.destroy()
  })
}
