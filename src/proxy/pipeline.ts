import { Failure, type Known, type Matched, type Outcome, type Sealed } from '../core/index.ts'
import { Attempts } from './attempts.ts'
import { takeBody } from './body.ts'
import type { BodyWatch } from './body-watch.ts'
import type { Exchange } from './exchange.ts'
import type { Match } from './match.ts'
import type { Sessions } from './sessions.ts'

export interface Stages {
  readonly match: Match
  readonly sessions: Sessions
  readonly bodyWatch: BodyWatch
}

/** What an answer that went out was like. */
export type Answered = Extract<Outcome, { done: true }>

/**
 * One request through all stages. The order is here and nowhere else, and the types refuse any other. Throws `Failure`
 * as long as nothing of an answer is out; `undefined` when the client left before anything was sent.
 */
export async function runPipeline(
  { match, sessions, bodyWatch }: Stages,
  exchange: Exchange,
): Promise<Answered | undefined> {
  const matched = match(exchange) // which route
  const { route } = matched
  if (exchange.isUpgrade) requireUpgradable(matched)
  const known = await route.authenticate(matched) // who is calling
  exchange.caller = known.caller
  sessions.bind(known) // whose session it is
  await keepBody(known, exchange, bodyWatch) // only now: nobody unknown makes us keep anything
  const attempts = new Attempts(matched.body)
  for (const attempt of attempts) {
    exchange.attempts = attempt.number
    const armed = await route.obtain.obtain(known) // the credential that this caller has at that backend
    if (exchange.gone) break
    const sealed = route.apply.apply(armed, attempt) // headers final, then signed; nothing may touch it after
    const outcome = await send(exchange, sealed) // streams the answer, or says Again before a byte of it was sent
    if (outcome.done) return outcome
    await attempts.allow(armed, outcome.again)
  }
  return undefined
}

const send = ({ isUpgrade }: Exchange, sealed: Sealed): Promise<Outcome> => {
  const { forward } = sealed.armed.known.matched.route
  return isUpgrade ? forward.upgrade(sealed) : forward.forward(sealed)
}

async function keepBody({ matched }: Known, exchange: Exchange, watch: BodyWatch): Promise<void> {
  const { apply, bufferedBodyBytes } = matched.route
  const body = takeBody(exchange, { mustKeep: apply.needsBody, limitBytes: bufferedBodyBytes, watch })
  matched.body = await body
}

function requireUpgradable({ route, inbound }: Matched): void {
  if (!route.allowUpgrade) throw new Failure('upgrade_refused')
  // Only a request without a body can become something else (RFC 6455 §4.1).
  if (inbound.method !== 'GET') throw new Failure('bad_request', { detail: 'an upgrade with another method than GET' })
}
