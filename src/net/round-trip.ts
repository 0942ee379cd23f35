import type { Dispatcher } from 'undici'
import { OutboundError, type OutboundErrorKind, type OutboundRequest, type OutboundResponse } from '../core/index.ts'

export interface RoundTripBounds {
  /** Milliseconds left to connect, send and read the response. */
  readonly deadlineMs: number
  /** Maximum bytes of the response body. */
  readonly maxBytes: number
}

type AnswerHeaders = Parameters<NonNullable<Dispatcher.DispatchHandler['onResponseStart']>>[2]

/** Lower-cases names and joins repeated ones as a list. */
export const flatten = (headers: AnswerHeaders): Record<string, string> => {
  const flat: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) flat[name.toLowerCase()] = typeof value === 'string' ? value : value.join(', ')
  }
  return flat
}

/** Errors of a response that is not valid HTTP; aborted responses are different. */
const MALFORMED: ReadonlySet<unknown> = new Set(['UND_ERR_HEADERS_OVERFLOW', 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH'])

const kindOf = (error: unknown): OutboundErrorKind => {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'UND_ERR_CONNECT_TIMEOUT' || code === 'ETIMEDOUT') return 'timeout'
  const isParsers = error instanceof Error && error.name === 'HTTPParserError'
  return isParsers || MALFORMED.has(code) ? 'malformed' : 'unreachable'
}

/** Reads one response within its limits and settles exactly once. */
class Reader implements Dispatcher.DispatchHandler {
  readonly #resolve: (response: OutboundResponse) => void
  readonly #reject: (error: OutboundError) => void
  readonly #maxBytes: number
  readonly #timer: NodeJS.Timeout
  readonly #chunks: Buffer[] = []
  #controller: Dispatcher.DispatchController | undefined
  #failed: OutboundError | undefined
  #status = 0
  #headers: Record<string, string> = {}
  #length = 0

  constructor(
    bounds: RoundTripBounds,
    resolve: (response: OutboundResponse) => void,
    reject: (error: OutboundError) => void,
  ) {
    this.#resolve = resolve
    this.#reject = reject
    this.#maxBytes = bounds.maxBytes
    this.#timer = setTimeout(
      () => this.fail(new OutboundError('timeout', { isSent: this.#controller !== undefined })),
      Math.max(0, bounds.deadlineMs),
    )
  }

  fail(error: OutboundError): void {
    if (this.#failed !== undefined) return
    this.#failed = error
    clearTimeout(this.#timer)
    this.#reject(error)
    this.#controller?.abort(error)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    // The deadline passed while connecting.
    if (this.#failed !== undefined) controller.abort(this.#failed)
  }

  onRequestUpgrade(): void {
    this.fail(new OutboundError('unreachable', { isSent: true }))
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: AnswerHeaders): void {
    if (status < 200) return
    this.#status = status
    this.#headers = flatten(headers)
    if (Number(this.#headers['content-length'] ?? 0) > this.#maxBytes) this.fail(new OutboundError('too_large'))
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#length += chunk.length
    if (this.#length > this.#maxBytes) this.fail(new OutboundError('too_large'))
    else this.#chunks.push(chunk)
  }

  onResponseEnd(): void {
    clearTimeout(this.#timer)
    const [only] = this.#chunks
    const body = this.#chunks.length === 1 && only !== undefined ? only : Buffer.concat(this.#chunks, this.#length)
    this.#resolve({ status: this.#status, headers: this.#headers, body })
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    const isSent = this.#controller !== undefined
    this.fail(error instanceof OutboundError ? error : new OutboundError(kindOf(error), { cause: error, isSent }))
  }
}

/**
 * Sends one request and reads the response. Follows no redirects and decodes no content codings (none are requested).
 * Throws `OutboundError`: timeout, unreachable, too_large, malformed, blocked_address.
 */
export const roundTrip = (
  dispatcher: Dispatcher,
  request: OutboundRequest,
  bounds: RoundTripBounds,
): Promise<OutboundResponse> =>
  new Promise((resolve, reject) => {
    const reader = new Reader(bounds, resolve, reject)
    try {
      const url = new URL(request.url)
      dispatcher.dispatch(
        {
          origin: url.origin,
          path: `${url.pathname}${url.search}`,
          method: request.method,
          headers: Object.entries(request.headers ?? {}).flat(),
          body: request.body ?? null,
        },
        reader,
      )
    } catch (error) {
      // For an invalid URL or header, or a closed client, undici throws instead of calling the handler.
      reader.fail(new OutboundError('unreachable', { cause: error }))
    }
  })
