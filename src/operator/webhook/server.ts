import { causeOf, type ClientRequest, type EndpointResponse, type Log, type Metrics } from '../../core/index.ts'
import { openListener, parseListenAddress, serveEndpoint } from '../../listen/index.ts'
import type { Certificate } from './certificates.ts'
import { type AdmissionDecision, type AdmissionRequest, readReview, reviewOf } from './review.ts'
import { createReviewTurns } from './review-turns.ts'

export const VALIDATE_PATH = '/validate'
export const MUTATE_PATH = '/mutate'

/** Decides; `undefined` when it was given up because `signal` says that nobody waits for it any more. */
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
  readonly now: () => number
  /**
   * Milliseconds that it goes on to answer when it is closed, each answer being the last one on its connection: until the
   * endpoints of the Service have forgotten this replica, API servers go on to ask it. Default 5,000.
   */
  readonly leaveMs?: number | undefined
}

export interface WebhookServer {
  readonly port: number
  /** New connections get this certificate; running ones go on. */
  use(certificate: Certificate): void
  /** Answers on for `leaveMs`, then stops listening and lets answers under way finish for up to a second. */
  close(): Promise<void>
}

interface Asked {
  readonly review: AdmissionRequest
  readonly bytes: number
  readonly webhook: 'validate' | 'mutate'
  readonly gone: AbortSignal
}

/** Counted from the start, so that the first of a kind is seen as a rise. */
const DECISIONS = ['allowed', 'refused', 'busy', 'gone', 'malformed']

const BUSY = { allowed: false, isBusy: true } as const

const MAX_BODY_BYTES = 3 * 1024 * 1024
/** Of all that are read at the same time: whoever reaches the port must not be able to fill the memory. */
const MOST_READING_BYTES = 64 * 1024 * 1024
const MAX_HEADER_BYTES = 16 * 1024
/** One API server keeps a few; there are not many of them. */
const MAX_CONNECTIONS = 1_000
const REQUEST_MS = 10_000
const HEADERS_MS = 5_000
/** API servers keep idle connections for 90 s: whoever ends one first has no request on its way. */
const KEEP_ALIVE_MS = 120_000
const CLOSE_GRACE_MS = 1_000
const DEFAULT_LEAVE_MS = 5_000
const SECONDS = [0.001, 0.005, 0.02, 0.1, 0.5, 2]

/** The HTTPS server that the API server asks (`admission.k8s.io/v1`): bounded in size and time, malformed reviews are 4xx. */
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
          log.error({ cause: causeOf(error) }, 'a review could not be answered')
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

/** The body, or the status of why not: it is too long, or those that are read at the same time are. */
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

/** What is no UTF-8 is no JSON (RFC 8259 §8.1): it is refused, not mended. */
function parse(body: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch {
    return undefined
  }
}
