import type { MonotonicMs, OnBehalf, Outbound } from '../core/index.ts'

/** The request of `@aws-sdk` clients, as far as it is used. */
export interface SmithyRequest {
  readonly method: string
  readonly protocol: string
  readonly hostname: string
  readonly port?: number | undefined
  readonly path: string
  readonly query?: Readonly<Record<string, string | readonly string[] | null>> | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly body?: unknown
}

/** Options of one `send`. */
export interface SmithyCallOptions {
  readonly onBehalfOf?: OnBehalf
  /** See `OutboundRequest`. */
  readonly endsAtMs?: MonotonicMs
  /** The SDK's option that identifies such options; the outbound's deadline applies. */
  readonly requestTimeout?: number
}

/** The response, with the body as bytes, which the SDK accepts. */
export interface SmithyResponse {
  readonly statusCode: number
  readonly headers: Record<string, string>
  readonly body: Uint8Array
}

/** Fits `requestHandler` of an AWS SDK client. */
export interface SmithyHandler {
  readonly metadata: { readonly handlerProtocol: string }
  handle(request: SmithyRequest, options?: SmithyCallOptions): Promise<{ response: SmithyResponse }>
  destroy(): void
  updateHttpClientConfig(): void
  httpHandlerConfigs(): Record<string, never>
}

const queryOf = (query: SmithyRequest['query']): string => {
  const parameters: string[] = []
  for (const [name, value] of Object.entries(query ?? {})) {
    for (const one of typeof value === 'string' || value === null ? [value] : value) {
      parameters.push(
        one === null ? encodeURIComponent(name) : `${encodeURIComponent(name)}=${encodeURIComponent(one)}`,
      )
    }
  }
  return parameters.length === 0 ? '' : `?${parameters.join('&')}`
}

/**
 * Creates a request handler for `@aws-sdk/client-sts` on an `Outbound`, with its deadline, size limit, breaker and
 * TLS. Throws `OutboundError`. `destroy` does nothing: the owner closes the outbound.
 */
export const createSmithyHandler = (outbound: Outbound): SmithyHandler => ({
  metadata: { handlerProtocol: 'http/1.1' },
  handle: async (request, { onBehalfOf, endsAtMs } = {}) => {
    const { body } = request
    if (body !== undefined && typeof body !== 'string' && !(body instanceof Uint8Array)) {
      throw new TypeError('the body of an STS request must be a string or bytes')
    }
    const port = request.port === undefined ? '' : `:${request.port}`
    const response = await outbound.request({
      method: request.method === 'GET' ? 'GET' : 'POST',
      url: `${request.protocol}//${request.hostname}${port}${request.path}${queryOf(request.query)}`,
      headers: request.headers,
      ...(body === undefined ? {} : { body }),
      ...(onBehalfOf === undefined ? {} : { onBehalfOf }),
      ...(endsAtMs === undefined ? {} : { endsAtMs }),
    })
    return { response: { statusCode: response.status, headers: { ...response.headers }, body: response.body } }
  },
  destroy: () => undefined,
  updateHttpClientConfig: () => undefined,
  httpHandlerConfigs: () => ({}),
})
