import type { MonotonicMs, OnBehalf, Outbound, OutboundRequest, OutboundResponse, Secret } from '../core/index.ts'

export interface FormPost {
  readonly url: string
  /** Fields in sending order; names may repeat (`audience`, `resource`). */
  readonly form: readonly (readonly [string, string])[] | Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  readonly onBehalfOf?: OnBehalf
  /** As of an `OutboundRequest`. */
  readonly endsAtMs?: MonotonicMs
}

const formEncode = (text: string): string => new URLSearchParams([['', text]]).toString().slice(1)

/**
 * `Authorization` value of `client_secret_basic`: id and secret form-encoded first, then Base64 (RFC 6749 §2.3.1).
 */
export const basicCredentials = (clientId: string, clientSecret: Secret): string =>
  `Basic ${Buffer.from(`${formEncode(clientId)}:${formEncode(clientSecret.reveal())}`).toString('base64')}`

/** A form request to a token or introspection endpoint (RFC 6749 §4, RFC 7662 §2.1), accepting JSON. */
export function formRequest(post: FormPost): OutboundRequest {
  const body = new URLSearchParams()
  for (const [name, value] of Array.isArray(post.form) ? post.form : Object.entries(post.form)) body.append(name, value)
  return {
    method: 'POST',
    url: post.url,
    headers: { ...post.headers, 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
    body: body.toString(),
    ...(post.onBehalfOf === undefined ? {} : { onBehalfOf: post.onBehalfOf }),
    ...(post.endsAtMs === undefined ? {} : { endsAtMs: post.endsAtMs }),
  }
}

/** Posts the form. Throws `OutboundError`; a response with any status is returned. */
export const postForm = (outbound: Outbound, post: FormPost): Promise<OutboundResponse> =>
  outbound.request(formRequest(post))
