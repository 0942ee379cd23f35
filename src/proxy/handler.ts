import type { IncomingMessage, ServerResponse } from 'node:http'
import { asFailure, Failure, type Clock } from '../core/index.ts'
import { CLIENT_GONE_STATUS } from '../forward/index.ts'
import { admit } from './admission.ts'
import { answerDocument, answerFailure, answerPreflight } from './answers.ts'
import type { BodyWatch } from './body-watch.ts'
import type { Connection } from './connection.ts'
import { isWellKnown } from './documents.ts'
import { Exchange } from './exchange.ts'
import type { Ending, Observer } from './observe.ts'
import type { OriginRules } from './origins.ts'
import { runPipeline } from './pipeline.ts'
import type { Runtimes, Surface } from './runtimes.ts'
import type { Sessions } from './sessions.ts'

export interface HandlerOptions {
  readonly rules: OriginRules
  readonly runtimes: Runtimes
  readonly sessions: Sessions
  readonly bodyWatch: BodyWatch
  readonly observer: Observer
  readonly clock: Clock
  readonly newRequestId: () => string
}

export interface Handler {
  handle(
    request: IncomingMessage,
    response: ServerResponse,
    connection: Connection,
    kind: { readonly expectsContinue: boolean; readonly isUpgrade: boolean },
  ): void
  /** Requests that are being answered. */
  readonly active: ReadonlySet<Exchange>
  /** From now on new requests get 503 and their connection is closed. */
  refuse(): void
  /** Called whenever a request is over. */
  onFinished: (() => void) | undefined
}

/** Everything between a parsed request and its log line. */
export function createHandler(options: HandlerOptions): Handler {
  const { rules, runtimes, sessions, bodyWatch, observer, clock, newRequestId } = options
  const active = new Set<Exchange>()
  let isRefusing = false

  const answer = async (exchange: Exchange, surface: Surface): Promise<Ending> => {
    admit(exchange, rules)
    if (isRefusing) throw new Failure('draining')
    const headers = exchange.request.headers
    if (
      exchange.method === 'OPTIONS' &&
      headers['access-control-request-method'] !== undefined &&
      headers.origin !== undefined
    )
      return answered(204, () => answerPreflight(exchange))
    if (isWellKnown(exchange.path)) {
      const document = documentFor(exchange, surface)
      return answered(200, () => answerDocument(exchange, document))
    }
    const outcome = await runPipeline({ match: surface.match, sessions, bodyWatch }, exchange)
    if (outcome === undefined || exchange.refusal !== undefined || outcome.status === CLIENT_GONE_STATUS)
      return gone(exchange)
    const { status, firstByteAtMs, aborted } = outcome
    return { status, reason: aborted ? 'aborted' : '', firstByteAtMs, failure: undefined }
  }

  const serve = async (exchange: Exchange): Promise<void> => {
    const lease = runtimes.lease()
    active.add(exchange)
    const { connection } = exchange
    connection.active++
    connection.last = exchange
    try {
      const ending = await answer(exchange, lease.surface).catch((error: unknown) =>
        fail(exchange, asFailure(error), isRefusing),
      )
      observer.finished(exchange, ending)
    } finally {
      connection.active--
      active.delete(exchange)
      exchange.finish()
      lease.release()
      handler.onFinished?.()
    }
  }

  const handler: Handler = {
    active,
    onFinished: undefined,
    refuse() {
      isRefusing = true
      for (const { response } of active) response.shouldKeepAlive = false
    },
    handle(request, response, connection, { expectsContinue, isUpgrade }) {
      const { activeStreams } = observer
      const id = newRequestId()
      const more = { id, clock, activeStreams, expectsContinue, isUpgrade }
      const exchange = new Exchange(request, response, connection, more)
      // Only what answers or counts a failure can fail here; the client must not wait for it.
      serve(exchange).catch(() => response.destroy())
    },
  }
  return handler
}

function documentFor(exchange: Exchange, { documents }: Surface): Buffer {
  if (exchange.method !== 'GET' && exchange.method !== 'HEAD')
    throw new Failure('method_not_allowed', { detail: 'a discovery document is only read' })
  const { path, query } = exchange
  const document = documents.get(query === '' ? path : `${path}?${query}`) ?? documents.get(path)
  if (document === undefined) throw new Failure('not_found', { detail: 'no such discovery document' })
  return document
}

function answered(status: number, send: () => void): Ending {
  send()
  return { status, reason: '', firstByteAtMs: undefined, failure: undefined }
}

function fail(exchange: Exchange, failure: Failure, closes: boolean): Ending {
  if (exchange.gone || exchange.refusal !== undefined || exchange.socket.destroyed) return gone(exchange)
  answerFailure(exchange, failure, closes)
  return { status: failure.status, reason: failure.code, firstByteAtMs: undefined, failure }
}

function gone({ refusal }: Exchange): Ending {
  return refusal === undefined
    ? { status: CLIENT_GONE_STATUS, reason: 'client_gone', firstByteAtMs: undefined, failure: undefined }
    : { status: refusal.status, reason: refusal.code, firstByteAtMs: undefined, failure: refusal }
}
