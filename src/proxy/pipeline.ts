import {
  type Armed,
  type Attempt,
  type Elicitation,
  Failure,
  type Known,
  type Body,
  type Matched,
  type Outcome,
  type Sealed,
} from '../core/index.ts'
import { Attempts } from './attempts.ts'
import { takeBody } from './body.ts'
import type { BodyWatch } from './body-watch.ts'
import type { InboundRequest } from './inbound-request.ts'
import type { Match } from './match.ts'
import type { Sessions } from './sessions.ts'

export interface PipelineTools {
  readonly sessions: Sessions
  readonly bodyWatch: BodyWatch
}

const BUFFERED_BODY = { name: 'limits.bufferedBody', of: 'the route' }
const EVALUATED_BODY = { name: 'limits.evaluatedBody', of: 'the route' }

/** Properties of a sent response. */
export type Answered = Extract<Outcome, { done: true }>

/**
 * Runs one request through all stages. The order is defined only here, and enforced by types. Throws `Failure` while
 * no response has started; `undefined` if the client disconnected before.
 */
export async function runPipeline(
  match: Match,
  inbound: InboundRequest,
  { sessions, bodyWatch }: PipelineTools,
): Promise<Answered | undefined> {
  const matched = match(inbound) // which route
  const { route } = matched
  const { trace } = inbound
  if (inbound.request.isUpgrade) requireUpgradable(matched)
  const caller = route.authenticate(matched) // who is calling
  const known = caller instanceof Promise ? await caller : caller // awaiting a ready value costs a turn of the event loop
  inbound.caller = known.caller
  trace?.known(known)
  if (inbound.gone) return undefined // its body would never come
  sessions.bind(known) // whose session it is
  const body = bodyOf(matched, inbound, bodyWatch) // only now: unknown callers must not make the proxy buffer a body
  inbound.body = matched.body = body instanceof Promise ? await body : body
  if (!inbound.gone && route.elicitation !== undefined) await preparePrompt(route.elicitation, known, inbound)
  if (!inbound.gone) route.authorize?.authorize(known) // what it asks for, and whether this caller may
  const admitted = trace?.admit?.()
  if (admitted !== undefined) await admitted
  const attempts = new Attempts(matched.body)
  for (const attempt of attempts) {
    if (inbound.gone) break // refused while its body was read, or left: no credential is obtained for it
    inbound.attempts = attempt.number
    trace?.attempt(attempt, route.obtain.lookup(known))
    const obtained = obtain(known, inbound) // the credential that this caller has at that backend
    const armed = obtained instanceof Promise ? await obtained : obtained
    trace?.armed(armed)
    if (inbound.gone) break
    const sealed = route.apply.apply(armed, lastWord(armed, attempt)) // headers final, then signed; nothing may touch it after
    trace?.sealed(sealed)
    const outcome = await send(inbound, sealed) // streams the response, or returns Again before its first byte
    if (outcome.done) return outcome
    trace?.again(outcome.again)
    await attempts.allow(armed, outcome.again)
  }
  return undefined
}

/**
 * A signed request rejected twice within a second gets the backend's answer: no remedy is left, and its 400 or 403
 * must not become a 502 (decisions §4, Repeat once).
 */
const lastWord = (armed: Armed, attempt: Attempt): Attempt =>
  !attempt.final &&
  armed.credential.kind === 'aws' &&
  armed.known.matched.route.obtain.isFreshAfterRejection?.(armed) === true
    ? { ...attempt, final: true }
    : attempt

async function preparePrompt(elicitation: Elicitation, known: Known, inbound: InboundRequest): Promise<void> {
  const { matched } = known
  await elicitation.prepare(known)
  inbound.body = matched.body
}

/** On routes with connected accounts, the handler prompts a caller without a connection. */
function obtain(known: Known, inbound: InboundRequest): Armed | Promise<Armed> {
  const { elicitation, obtain: stage } = known.matched.route
  if (elicitation === undefined) return stage.obtain(known)
  const connected = (armed: Armed): Armed => {
    elicitation.connected(known)
    return armed
  }
  // A backend may end a connection, or require more of it, after it was used.
  inbound.promptable = known
  const obtained = stage.obtain(known)
  return obtained instanceof Promise ? obtained.then(connected) : connected(obtained)
}

const send = ({ request }: InboundRequest, sealed: Sealed): Promise<Outcome> => {
  const { forward } = sealed.route
  return request.isUpgrade ? forward.upgrade(sealed) : forward.forward(sealed)
}

function bodyOf({ route }: Matched, inbound: InboundRequest, watch: BodyWatch): Body | Promise<Body> {
  route.apply.admit(inbound)
  const { authorize } = route
  if (authorize?.admit(inbound) === true) {
    // The evaluated bytes are buffered, and are the ones that are sent.
    return takeBody(inbound, {
      mustKeep: true,
      limitBytes: authorize.limitBytes,
      limitSetting: EVALUATED_BODY,
      watch,
    })
  }
  return takeBody(inbound, {
    // A prompt needs the request, and a retry after one holds fields that the backend must not get.
    mustKeep: route.apply.needsBody || route.elicitation !== undefined,
    limitBytes: route.limits.bufferedBody,
    limitSetting: BUFFERED_BODY,
    watch,
  })
}

function requireUpgradable({ route, inbound }: Matched): void {
  if (!route.allowUpgrade) throw new Failure('upgrade_refused')
  // Only a request without a body can be upgraded (RFC 6455 §4.1).
  if (inbound.method !== 'GET') throw new Failure('bad_request', { detail: 'an upgrade with another method than GET' })
}
