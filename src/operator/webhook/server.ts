import {
  causeOf,
  type ClientRequest,
  type EndpointResponse,
  type EpochMs,
  type Log,
  type Metrics,
} from '../../core/index.ts'
import { openListener, parseListenAddress, serveEndpoint } from '../../listen/index.ts'
import type { Certificate } from './certificates.ts'
import { type AdmissionDecision, type AdmissionRequest, readReview, reviewOf } from './review.ts'
import { createReviewTurns } from './review-turns.ts'

export const VALIDATE_PATH = '/validate'
export const MUTATE_PATH = '/mutate'

/** Decides; `undefined` if `signal` reported that the client disconnected. */
export type Decide = (
  request: AdmissionRequest,
  signal: AbortSignal,
) => AdmissionDecision | Promise<AdmissionDecision | undefined>

export interface WebhookServerOptions {
  /** `host:port`, `:port`. */
  readonly address: string
  readonly certificate: Certificate
  readonly validate: Decide
  readonly mutate: Decide
  readonly log: Log
  readonly metrics: Metrics
  readonly now: () => EpochMs
  /**
   * Milliseconds of continued serving after close, with each response the last on its connection: API servers connect
   * until the endpoints of the Service have removed this replica. Default 5,000.
   */
  readonly leaveMs?: number | undefined
}

export interface WebhookServer {
  readonly port: number
  /** Uses this certificate for new connections; existing ones continue. */
  use(certificate: Certificate): void
  /** Continues serving for `leaveMs`, then stops listening and gives in-flight responses up to a second. */
  close(): Promise<void>
}

interface Asked {
  readonly review: AdmissionRequest
  readonly bytes: number
  readonly webhook: 'validate' | 'mutate'
  readonly gone: AbortSignal
}

/** Initialized at the start, so that the first increment is visible. */
const DECISIONS = ['allowed', 'refused', 'busy', 'gone', 'malformed']

const BUSY = { allowed: false, isBusy: true } as const

const MAX_BODY_BYTES = 3 * 1024 * 1024
/** Maximum bytes of bodies being read at the same time: clients of the port must not exhaust the memory. */
const MOST_READING_BYTES = 64 * 1024 * 1024
const MAX_HEADER_BYTES = 16 * 1024
/** Each API server keeps few connections, and there are few API servers. */
const MAX_CONNECTIONS = 1_000
const REQUEST_MS = 10_000
const HEADERS_MS = 5_000
/** Longer than the 90 s of API servers, so that this side never closes a connection with a request in flight. */
const KEEP_ALIVE_MS = 120_000
const CLOSE_GRACE_MS = 1_000
const DEFAULT_LEAVE_MS = 5_000
const SECONDS = [0.001, 0.005, 0.02, 0.1, 0.5, 2]

/**
 * The HTTPS server for admission reviews (`admission.k8s.io/v1`): limited in size and time; malformed reviews get
 * 4xx.
 */
export async function startWebhookServer(options: WebhookServerOptions): Promise<WebhookServer> {
  const { log, metrics } = options
  const decisions = metrics.counter('extauth_operator_webhook_requests_total', 'Reviews by webhook and decision.', [
    'webhook',
    'decision',
  ])
  const seconds = metrics.histogram(
    'extauth_operator_webhook_duration_seconds',
    'Time of one decision.',
    ['webhook'],
    SECONDS,
  )

  for (const webhook of ['validate', 'mutate'])
    for (const decision of DECISIONS) decisions.with(webhook, decision).add(0)
  const turns = createReviewTurns()
  const reading = { bytes: 0 }
  const inTurn = async (decide: Decide, { review, bytes, webhook, gone }: Asked) => {
    const turn = await turns.take(review.namespace, bytes, gone)
    if (turn.is !== 'given') {
      const message = `too many reviews of namespace "${review.namespace}" at once`
      return turn.is === 'gone' ? undefined : { ...BUSY, message }
    }
    const startedMs = options.now()
    try {
      return await decide(review, gone)
    } finally {
      turn.done()
      seconds.with(webhook).observe((options.now() - startedMs) / 1000)
    }
  }

  const answer = async (request: ClientRequest, gone: AbortSignal): Promise<EndpointResponse | undefined> => {
    const path = request.url.split('?')[0]
    const decide = path === VALIDATE_PATH ? options.validate : path === MUTATE_PATH ? options.mutate : undefined
    const webhook = path === MUTATE_PATH ? 'mutate' : 'validate'
    if (decide === undefined) return refusal(404)
    if (request.method !== 'POST') return refusal(405)
    if (!/^application\/json *(;|$)/i.test(request.headers['content-type'] ?? '')) return refusal(415)
    const body = await readBody(request, reading)
    if (typeof body === 'number') return refusal(body)
    const review = readReview(parse(body))
    const bytes = body.length
    if (review === undefined) {
      decisions.with(webhook, 'malformed').add()
      return refusal(400)
    }
    const decision = await inTurn(decide, { review, bytes, webhook, gone })
    if (decision === undefined) {
      decisions.with(webhook, 'gone').add()
      return undefined
    }
    decisions.with(webhook, decision.allowed ? 'allowed' : decision.isBusy === true ? 'busy' : 'refused').add()
    const headers = { 'content-type': 'application/json', ...(isLeaving ? { connection: 'close' } : undefined) }
    return { status: 200, headers, body: JSON.stringify(reviewOf(review.uid, decision)) }
  }

  let isLeaving = false
  let pair = pairOf(options.certificate)
  const followers = new Set<() => void>()
  const listener = await openListener({
    address: parseListenAddress(options.address),
    tls: {
      current: () => pair,
      onChange(follower) {
        followers.add(follower)
        return () => followers.delete(follower)
      },
    },
    headerLimitBytes: MAX_HEADER_BYTES,
    deadlines: { headersMs: HEADERS_MS, requestMs: REQUEST_MS, keepAliveMs: KEEP_ALIVE_MS },
    maxConnections: MAX_CONNECTIONS,
    serve: serveEndpoint(
      (request, gone) =>
        answer(request, gone).catch((error: unknown) => {
          log.error({ cause: causeOf(error) }, 'review failed')
          return refusal(500)
        }),
      () => {},
    ),
    refusal: () => ({ headers: {}, body: '' }),
    log,
    metrics,
  })
  return {
    port: Number(new URL(listener.url).port),
    use(certificate) {
      pair = pairOf(certificate)
      for (const follower of followers) follower()
    },
    async close() {
      isLeaving = true
      await new Promise((resolve) => setTimeout(resolve, options.leaveMs ?? DEFAULT_LEAVE_MS))
      listener.stop()
      await listener.emptied(CLOSE_GRACE_MS)
      await listener.close()
    },
  }
}

const pairOf = ({ cert, key }: Certificate) => ({ cert: Buffer.from(cert), key: Buffer.from(key.reveal()) })

const refusal = (status: number): EndpointResponse => ({ status, headers: {}, body: '' })

/** The body, or the error status: the body, or all bodies being read, exceed the limit. */
async function readBody(request: ClientRequest, reading: { bytes: number }): Promise<Buffer | 413 | 503> {
  const parts: Buffer[] = []
  let length = 0
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      length += chunk.length
      reading.bytes += chunk.length
      if (length > MAX_BODY_BYTES) return 413
      if (reading.bytes > MOST_READING_BYTES) return 503
      parts.push(chunk)
    }
    return Buffer.concat(parts)
  } finally {
    reading.bytes -= length
  }
}

/** Invalid UTF-8 is invalid JSON (RFC 8259 §8.1): it is rejected, not repaired. */
function parse(body: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch {
    return undefined
  }
}
