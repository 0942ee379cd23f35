import { type Context, type Span, SpanKind, SpanStatusCode, trace, type Tracer } from '@opentelemetry/api'
import {
  secretsOfRequest,
  type SecretMask,
  type Again,
  type Armed,
  type Attempt,
  type CredentialLookup,
  type Inbound,
  type Matched,
  type RequestResult,
  type RequestTrace,
  type Sealed,
} from '../core/index.ts'
import { removeHeaders } from '../http/index.ts'
import { attributesOfHeaders, attributesOfBody, withoutSecrets } from './mcp.ts'
import { formatTraceparent, parseTraceparent } from './traceparent.ts'

/** Parent of the spans of outbound calls during a request. */
export interface SpanParent {
  current: Context
  /** Tracer of the request. */
  readonly tracer: Tracer
}

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
/** Other methods may be any text of a client (semantic conventions for HTTP). */
export const methodOf = (method: string): string => (METHODS.has(method) ? method : '_OTHER')

/** The spans of one request: the request, and below it authenticate, obtain and each attempt at the backend. */
export class RequestSpans implements RequestTrace {
  readonly #tracer: Tracer
  readonly #server: Span
  readonly #context: Context
  readonly #place: SpanParent
  readonly #inbound: Inbound
  /** The current stage: authenticate or obtain. */
  #stage: Span | undefined
  #forward: Span | undefined
  #attempt = 1

  constructor(tracer: Tracer, server: Span, context: Context, place: SpanParent, inbound: Inbound) {
    this.#tracer = tracer
    this.#server = server
    this.#context = context
    this.#place = place
    this.#inbound = inbound
    server.setAttribute('extauth.request.id', inbound.id)
    server.setAttributes(withoutSecrets(attributesOfHeaders(inbound.request.headers), this.#secrets))
  }

  dropped(): void {}

  get #secrets(): SecretMask {
    return secretsOfRequest(this.#inbound.request.rawHeaders)
  }

  matched(matched: Matched): void {
    const { route, inbound } = matched
    this.#server.updateName(`${methodOf(inbound.method)} ${route.path}`)
    // The path as configured: the rest is from the client and may contain anything.
    this.#server.setAttributes({
      'http.route': route.path,
      'url.path': route.path,
      'extauth.route': route.name,
      'extauth.type': route.type,
    })
    this.#begin('authenticate')
  }

  known(): void {
    this.#end()
  }

  attempt({ number }: Attempt, { from }: CredentialLookup): void {
    this.#attempt = number
    this.#begin('obtain', { 'extauth.credential.from': from })
  }

  armed({ known: { matched } }: Armed): void {
    this.#end()
    const { route, inbound } = matched
    const method = methodOf(inbound.method)
    const resent = this.#attempt === 1 ? {} : { 'http.request.resend_count': this.#attempt - 1 }
    const attributes = { 'http.request.method': method, ...serverOf(route.target.origin), ...resent }
    this.#forward = this.#tracer.startSpan(method, { kind: SpanKind.CLIENT, attributes }, this.#context)
    // Spans of the backend belong to this attempt.
    continueTrace(matched.headers, formatTraceparent(this.#forward.spanContext()))
  }

  sealed({ body }: Sealed): void {
    if (this.#attempt !== 1 || body.kind !== 'kept') return
    const { attributes, traceparent } = attributesOfBody(body.bytes)
    if (this.#inbound.request.headers['mcp-method'] === undefined)
      this.#server.setAttributes(withoutSecrets(attributes, this.#secrets))
    // If both are sent, the HTTP header is the parent: it precedes the body.
    const context = parseTraceparent(traceparent)
    if (context !== undefined) this.#server.addLink({ context })
  }

  sending(): void {
    this.#forward?.addEvent('connected')
  }

  received(status: number): void {
    this.#forward?.setAttribute('http.response.status_code', status)
    if (status >= 400) markFailed(this.#forward, String(status))
    this.#forward?.addEvent('first byte')
  }

  again({ reason }: Again): void {
    markFailed(this.#forward, reason)
    this.#forward?.end()
    this.#forward = undefined
  }

  responded(): void {}
  body(): void {}

  finished({ status, reason }: RequestResult): void {
    const server = this.#server
    const isError = reason !== '' && reason !== 'client_gone'
    if (isError) {
      markFailed(this.#stage, reason)
      markFailed(this.#forward, reason)
    }
    this.#end()
    this.#forward?.end()
    server.setAttribute('http.response.status_code', status)
    if (isError) server.setAttribute('error.type', reason)
    // A client error is not an error of the server (semantic conventions for HTTP).
    if (status >= 500 || reason === 'aborted') server.setStatus({ code: SpanStatusCode.ERROR })
    if (this.#attempt > 1) server.setAttribute('extauth.attempts', this.#attempt)
    server.end()
  }

  #begin(name: string, attributes: Record<string, string> = {}): void {
    this.#stage = this.#tracer.startSpan(name, { kind: SpanKind.INTERNAL, attributes }, this.#context)
    this.#place.current = trace.setSpan(this.#context, this.#stage)
  }

  #end(): void {
    this.#stage?.end()
    this.#stage = undefined
    this.#place.current = this.#context
  }
}

function markFailed(span: Span | undefined, type: string): void {
  span?.setAttribute('error.type', type).setStatus({ code: SpanStatusCode.ERROR })
}

/** Host and port by the semantic conventions. */
export function serverOf(origin: string): Record<string, string | number> {
  const url = URL.parse(origin)
  if (url === null) return {}
  const port = Number(url.port) || (url.protocol === 'https:' ? 443 : 80)
  return { 'server.address': url.hostname, 'server.port': port }
}

const TRACEPARENT: ReadonlySet<string> = new Set(['traceparent'])

/** Replaces the client's `traceparent`; `tracestate` and `baggage` stay. */
function continueTrace(headers: string[], traceparent: string): void {
  removeHeaders(headers, TRACEPARENT)
  headers.push('traceparent', traceparent)
}
