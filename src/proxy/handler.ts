import { once } from 'node:events'
import { Readable } from 'node:stream'
import {
  type ClientRequest,
  type ClientResponse,
  asFailure,
  Failure,
  type Clock,
  type LocalHandler,
  type RequestObserver,
  type RequestResult,
} from '../core/index.ts'
import { CLIENT_GONE_STATUS } from '../forward/index.ts'
import { type Connection, type IntrusiveSet, respond } from '../listen/index.ts'
import { admit, type AdmissionRules } from './admission.ts'
import { answerFailure, answerPreflight } from './answers.ts'
import type { BodyWatch } from './body-watch.ts'
import { isWellKnown } from './documents.ts'
import { InboundRequest } from './inbound-request.ts'
import type { RequestRecorder } from './request-recorder.ts'
import { runLocalHandler } from './local-handlers.ts'
import { rpcIdOf } from './rpc-id.ts'
import { runPipeline, type Answered } from './pipeline.ts'
import type { Runtimes } from './runtimes.ts'
import type { Sessions } from './sessions.ts'

export interface HandlerOptions {
  /** Requests in flight; the handler adds and removes. */
  readonly active: IntrusiveSet<InboundRequest>
  readonly rules: AdmissionRules
  readonly runtimes: Runtimes
  readonly sessions: Sessions
  readonly bodyWatch: BodyWatch
  readonly recorder: RequestRecorder
  readonly observer: RequestObserver | undefined
  readonly clock: Clock
  readonly newRequestId: () => string
  readonly isStrictTransport: boolean
}

export interface Handler {
  handle(request: ClientRequest, response: ClientResponse, connection: Connection<InboundRequest>): void
  /** From now on new requests get 503 and their connection is closed, and GET streams end immediately. */
  refuse(): void
}

/** Handles a request from parsing to its log line. */
export function createHandler(options: HandlerOptions): Handler {
  const { active, rules, runtimes, bodyWatch, recorder, observer, newRequestId } = options
  const context = {
    clock: options.clock,
    activeStreams: recorder.activeStreams,
    isDraining: false,
    isStrictTransport: options.isStrictTransport,
    bodyBudget: bodyWatch.budget,
    streamBudget: bodyWatch.streams,
  }

  const serve = async (inbound: InboundRequest): Promise<void> => {
    const runtime = runtimes.acquire()
    active.add(inbound)
    inbound.connection.served = inbound
    let result: RequestResult
    try {
      admit(inbound, rules, runtime.router.localHandlers)
      if (context.isDraining) throw new Failure('draining')
      const local = answeredByUs(inbound, bodyWatch)
      result =
        local === undefined ? resultOf(inbound, await runPipeline(runtime.router.match, inbound, options)) : await local
    } catch (error) {
      const failure = asFailure(error)
      const prompted = failure.code === 'not_connected' ? prompt(inbound, failure) : undefined
      result = await (prompted ?? fail(inbound, failure, context.isDraining))
    } finally {
      active.delete(inbound)
      inbound.finish()
      runtime.release()
    }
    recorder.finished(inbound, result)
    inbound.trace?.finished(result)
    // An idle connection keeps its last request for a while, without the body.
    inbound.body = undefined
  }

  return {
    refuse() {
      context.isDraining = true
    },
    handle(request, response, connection) {
      const inbound = new InboundRequest(request, response, connection, newRequestId(), context)
      inbound.trace = observer?.arrived(inbound)
      // Only sending or counting a failure can fail here; the client must not wait for it.
      serve(inbound).catch(() => response.destroy())
    },
  }
}

/** Preflights and local endpoints need no route. */
function answeredByUs(inbound: InboundRequest, watch: BodyWatch): RequestResult | undefined | Promise<RequestResult> {
  if (inbound.method === 'OPTIONS') {
    const { headers } = inbound.request
    if (headers['access-control-request-method'] !== undefined && headers.origin !== undefined) {
      answerPreflight(inbound)
      return answered(204)
    }
  }
  if (inbound.localHandler !== undefined) return answeredLocally(inbound, inbound.localHandler, watch)
  if (isWellKnown(inbound.path)) throw new Failure('not_found', { detail: 'no such discovery document' })
  return undefined
}

async function answeredLocally(
  inbound: InboundRequest,
  handler: LocalHandler,
  watch: BodyWatch,
): Promise<RequestResult> {
  const answer = await runLocalHandler(inbound, handler, watch)
  if (answer === undefined) return gone(inbound)
  await inbound.trace?.beforeResponse?.(answer.status)
  const { request, response, responseHeaders, trace } = inbound
  const headers = respond(request, response, answer, responseHeaders)
  trace?.responded(answer.status, headers)
  return answered(answer.status)
}

const answered = (status: number): RequestResult => ({
  status,
  reason: '',
  firstByteAtMs: undefined,
  failure: undefined,
})

function resultOf(inbound: InboundRequest, outcome: Answered | undefined): RequestResult {
  if (outcome === undefined || inbound.refusal !== undefined || outcome.status === CLIENT_GONE_STATUS)
    return gone(inbound)
  const { status, firstByteAtMs, aborted, torn } = outcome
  const failure = aborted ? (inbound.cutFor ?? torn) : undefined
  // Its client ended it, as clients do with a stream that they no longer need.
  const reason = failure === undefined ? 'client_gone' : 'aborted'
  return { status, reason: aborted ? reason : '', firstByteAtMs, failure }
}

/** The response to a caller without a connected account (connections.md §2); undefined on routes without connections. */
function prompt(inbound: InboundRequest, failure: Failure): Promise<RequestResult> | undefined {
  const { promptable, route } = inbound
  const elicitation = route?.elicitation
  if (promptable === undefined || elicitation === undefined) return undefined
  const answer = async (): Promise<RequestResult> => {
    try {
      const content = await elicitation.respond(promptable, failure)
      if (inbound.gone) return gone(inbound)
      const { request, response, responseHeaders, trace } = inbound
      const headers = respond(request, response, content, responseHeaders)
      trace?.responded(content.status, headers)
      if (content.body instanceof Readable) await streamed(inbound, content.body)
      return { ...answered(content.status), reason: failure.code, failure }
    } catch (error) {
      return fail(inbound, asFailure(error), false)
    }
  }
  return answer()
}

/** Until the stream has ended, or its client left; a drain and the end of the caller's token end it. */
async function streamed(inbound: InboundRequest, body: Readable): Promise<void> {
  const { response } = inbound
  inbound.onStream(() => body.push(null))
  if (!response.destroyed) await once(response, 'close').catch(() => undefined)
}

async function fail(inbound: InboundRequest, failure: Failure, closes: boolean): Promise<RequestResult> {
  const isGone = (): boolean => inbound.gone || inbound.refusal !== undefined || inbound.socket.destroyed
  if (isGone()) return gone(inbound)
  const id = inbound.response.headersSent ? undefined : await rpcIdOf(inbound)
  if (isGone()) return gone(inbound)
  const unrecorded = await recorded(inbound, failure)
  if (isGone()) return gone(inbound)
  if (unrecorded !== undefined) return fail(inbound, unrecorded, closes)
  answerFailure(inbound, failure, { closes, id })
  return { status: failure.status, reason: failure.code, firstByteAtMs: undefined, failure }
}

/** Waits until the audit trail has the failure; returns the failure to send instead if it cannot be written. */
async function recorded({ trace, response }: InboundRequest, failure: Failure): Promise<Failure | undefined> {
  if (response.headersSent) return undefined
  try {
    await trace?.beforeResponse?.(failure.status, failure)
    return undefined
  } catch (error) {
    return asFailure(error)
  }
}

/** Without a response: rejected before one, aborted, or the client disconnected. */
function gone({ refusal, cutFor }: InboundRequest): RequestResult {
  const failure = refusal ?? cutFor
  const { status, code: reason } = failure ?? { status: CLIENT_GONE_STATUS, code: 'client_gone' }
  return { status, reason, firstByteAtMs: undefined, failure }
}
