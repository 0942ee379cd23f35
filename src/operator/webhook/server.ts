import type { IncomingMessage, ServerResponse } from 'node:http'
import { causeOf, type Log, type Metrics } from '../../core/index.ts'
import { openListener, parseListenAddress } from '../../listen/index.ts'
import type { Certificate } from './certificates.ts'
import { type AdmissionDecision, type AdmissionRequest, readReview, reviewOf } from './review.ts'

export const VALIDATE_PATH = '/validate'
export const MUTATE_PATH = '/mutate'

export interface WebhookServerOptions {
  /** `host:port`, `:port`. */
  readonly address: string
  readonly certificate: Certificate
  readonly validate: (request: AdmissionRequest) => AdmissionDecision | Promise<AdmissionDecision>
  readonly mutate: (request: AdmissionRequest) => AdmissionDecision | Promise<AdmissionDecision>
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

const MAX_BODY_BYTES = 3 * 1024 * 1024
const MAX_HEADER_BYTES = 16 * 1024
/** One API server keeps a few; there are not many of them. */
const MAX_CONNECTIONS = 1_000
const REQUEST_MS = 10_000
const HEADERS_MS = 5_000
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

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = request.url?.split('?')[0]
    const decide = path === VALIDATE_PATH ? options.validate : path === MUTATE_PATH ? options.mutate : undefined
    const webhook = path === MUTATE_PATH ? 'mutate' : 'validate'
    if (decide === undefined) return refuse(request, response, 404)
    if (request.method !== 'POST') return refuse(request, response, 405)
    if (!/^application\/json *(;|$)/i.test(request.headers['content-type'] ?? '')) return refuse(request, response, 415)
    const body = await readBody(request)
    if (body === undefined) return refuse(request, response, 413)
    const review = readReview(parse(body))
    if (review === undefined) {
      decisions.with(webhook, 'malformed').add()
      return refuse(request, response, 400)
    }
    const startedMs = options.now()
    const decision = await decide(review)
    seconds.with(webhook).observe((options.now() - startedMs) / 1000)
    decisions.with(webhook, decision.allowed ? 'allowed' : 'refused').add()
    const text = JSON.stringify(reviewOf(review.uid, decision))
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }
    response.writeHead(200, isLeaving ? { ...headers, connection: 'close' } : headers).end(text)
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
    deadlines: { headersMs: HEADERS_MS, requestMs: REQUEST_MS },
    maxConnections: MAX_CONNECTIONS,
    serve(request, response, _connection, { expectsContinue }) {
      if (expectsContinue) response.writeContinue()
      answer(request, response).catch((error: unknown) => {
        log.error({ cause: causeOf(error) }, 'a review could not be answered')
        if (!response.headersSent) refuse(request, response, 500)
        else response.destroy()
      })
    },
    refusal: () => ({ headers: {}, body: '' }),
    clock: { now: options.now },
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

function refuse(request: IncomingMessage, response: ServerResponse, status: number): void {
  // What was not read would be taken for the next request.
  response.writeHead(status, request.complete ? {} : { connection: 'close' }).end()
}

async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const parts: Buffer[] = []
  let length = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    if ((length += chunk.length) > MAX_BODY_BYTES) return undefined
    parts.push(chunk)
  }
  return Buffer.concat(parts).toString('utf8')
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
