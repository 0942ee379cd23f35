import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import {
  asFailure,
  Failure,
  type Clock,
  type LocalHandler,
  type RequestObserver,
  type RequestResult,
} from '../core/index.ts'
import { CLIENT_GONE_STATUS } from '../forward/index.ts'
import type { Connection, IntrusiveSet, RequestKind } from '../listen/index.ts'
import { admit } from './admission.ts'
import { answerFailure, answerPreflight } from './answers.ts'
import type { BodyWatch } from './body-watch.ts'
import { isWellKnown } from './documents.ts'
import { Exchange } from './exchange.ts'
import type { RequestRecorder } from './observe.ts'
import { runLocalHandler } from './local-handlers.ts'
import type { OriginRules } from './origins.ts'
import { rpcIdOf } from './rpc-id.ts'
import { runPipeline, type Answered } from './pipeline.ts'
import type { Runtimes } from './runtimes.ts'
import type { Sessions } from './sessions.ts'

export interface HandlerOptions {
  /** The requests that are being answered; the handler adds and removes. */
  readonly active: IntrusiveSet<Exchange>
  readonly rules: OriginRules
  readonly runtimes: Runtimes
  readonly sessions: Sessions
  readonly bodyWatch: BodyWatch
  readonly recorder: RequestRecorder
  readonly observer: RequestObserver | undefined
  readonly clock: Clock
  readonly newRequestId: () => string
}

export interface Handler {
  handle(request: IncomingMessage, response: ServerResponse, connection: Connection<Exchange>, kind: RequestKind): void
  /** From now on new requests get 503 and their connection is closed, and streams that a GET opens end at once. */
  refuse(): void
}

/** Everything between a parsed request and its log line. */
export function createHandler(options: HandlerOptions): Handler {
  const { active, rules, runtimes, bodyWatch, recorder, observer, newRequestId } = options
  const context = { clock: options.clock, activeStreams: recorder.activeStreams, isDraining: false }

  const serve = async (exchange: Exchange): Promise<void> => {
    const lease = runtimes.lease()
    active.add(exchange)
    exchange.connection.served = exchange
    let result: RequestResult
    try {
      admit(exchange, rules, lease.surface.localHandlers)
      if (context.isDraining) throw new Failure('draining')
      const ours = answeredByUs(exchange, bodyWatch)
      result =
        ours === undefined ? resultOf(exchange, await runPipeline(lease.surface.match, exchange, options)) : await ours
    } catch (error) {
      result = await fail(exchange, asFailure(error), context.isDraining)
    } finally {
      active.delete(exchange)
      bodyWatch.budget.release(exchange)
      exchange.finish()
      lease.release()
    }
    recorder.finished(exchange, result)
    exchange.trace?.finished(result)
  }

  return {
    refuse() {
      context.isDraining = true
    },
    handle(request, response, connection, kind) {
      const exchange = new Exchange(request, response, connection, newRequestId(), kind, context)
      exchange.trace = observer?.arrived(exchange)
      // Only what answers or counts a failure can fail here; the client must not wait for it.
      serve(exchange).catch(() => response.destroy())
    },
  }
}

/** Preflights and endpoints of our own need no route. */
function answeredByUs(exchange: Exchange, watch: BodyWatch): RequestResult | undefined | Promise<RequestResult> {
  if (exchange.method === 'OPTIONS') {
    const { headers } = exchange.request
    if (headers['access-control-request-method'] !== undefined && headers.origin !== undefined) {
      answerPreflight(exchange)
      return answered(204)
    }
  }
  if (exchange.localHandler !== undefined) return answeredLocally(exchange, exchange.localHandler, watch)
  if (isWellKnown(exchange.path)) throw new Failure('not_found', { detail: 'no such discovery document' })
  return undefined
}

async function answeredLocally(exchange: Exchange, handler: LocalHandler, watch: BodyWatch): Promise<RequestResult> {
  await runLocalHandler(exchange, handler, watch)
  const { response, trace } = exchange
  trace?.responded(response.statusCode, flat(response.getHeaders()))
  return exchange.gone ? gone(exchange) : answered(response.statusCode)
}

const flat = (headers: OutgoingHttpHeaders): string[] =>
  Object.entries(headers).flatMap(([name, value]) => [name, String(value)])

const answered = (status: number): RequestResult => ({
  status,
  reason: '',
  firstByteAtMs: undefined,
  failure: undefined,
})

function resultOf(exchange: Exchange, outcome: Answered | undefined): RequestResult {
  if (outcome === undefined || exchange.refusal !== undefined || outcome.status === CLIENT_GONE_STATUS)
    return gone(exchange)
  const { status, firstByteAtMs, aborted } = outcome
  return { status, reason: aborted ? 'aborted' : '', firstByteAtMs, failure: undefined }
}

async function fail(exchange: Exchange, failure: Failure, closes: boolean): Promise<RequestResult> {
  const isGone = (): boolean => exchange.gone || exchange.refusal !== undefined || exchange.socket.destroyed
  if (isGone()) return gone(exchange)
  const id = exchange.response.headersSent ? undefined : await rpcIdOf(exchange)
  if (isGone()) return gone(exchange)
  answerFailure(exchange, failure, { closes, id })
  return { status: failure.status, reason: failure.code, firstByteAtMs: undefined, failure }
}

function gone({ refusal }: Exchange): RequestResult {
  return refusal === undefined
    ? { status: CLIENT_GONE_STATUS, reason: 'client_gone', firstByteAtMs: undefined, failure: undefined }
    : { status: refusal.status, reason: refusal.code, firstByteAtMs: undefined, failure: refusal }
}
