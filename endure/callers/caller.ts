import type { Dispatcher } from 'undici'
import type { LabIdentityProvider } from '../../lab/index.ts'
import { type Call, CALL_HEADER, type Outcome, type Expectation } from '../oracle/call.ts'
import type { FaultLog, Part } from '../oracle/excuses.ts'
import type { Findings } from '../oracle/findings.ts'
import { judge, mayBeServedBy, reasonOf } from '../oracle/judge.ts'
import type { Lines } from '../oracle/lines.ts'
import type { Marks } from '../oracle/marks.ts'
import type { Witness } from '../oracle/witness.ts'
import type { Random } from '../random.ts'
import { send } from './client.ts'
import type { People } from './people.ts'
import type { Body } from './messages.ts'
import { type Identity, needsOf, type Profile } from './routes.ts'

/** Shared state of all callers of a run. */
export interface Surroundings {
  /** Where the proxies are found. */
  readonly url: string
  readonly agent: Dispatcher
  readonly profiles: readonly Profile[]
  readonly identity: Pick<LabIdentityProvider, 'mint'>
  readonly witness: Witness
  readonly lines: Pick<Lines, 'expect'>
  readonly findings: Findings
  readonly faults: FaultLog
  readonly marks: Marks
  readonly tally: Tally
  readonly people: People
  /** Ends when the run is over. */
  pause(ms: number): Promise<void>
  /** The same between two requests, longer on a machine that has no time. */
  think(ms: number): Promise<void>
  isOver(): boolean
}

/** Counts of responses by status. */
export interface Tally {
  add(name: string): void
  readonly counts: ReadonlyMap<string, number>
}

export function createTally(): Tally {
  const counts = new Map<string, number>()
  return { counts, add: (name) => void counts.set(name, (counts.get(name) ?? 0) + 1) }
}

/** A caller of one route, and its permitted results. */
export interface Caller {
  readonly name: string
  readonly around: Surroundings
  readonly random: Random
  readonly profile: Profile
  readonly identity: Identity
  readonly token: string | undefined
  /** Required rejections of callers without permission. */
  readonly refusal?: readonly string[]
  /** When the token ended that must be refused for it, in milliseconds of `performance.now()`. */
  readonly tokenEndedAt?: number
  /** Beside what the route needs. */
  readonly needs?: readonly Part[]
}

export interface Asked {
  readonly id: string
  readonly method?: 'GET' | 'POST' | 'DELETE'
  readonly body?: Body
  readonly headers?: Readonly<Record<string, string>>
  readonly expectation: Expectation
  /** Default: what is sent by POST. */
  readonly isUnsafe?: boolean
  readonly leaveAfterMs?: number
  readonly needs?: readonly Part[]
}

/** When each came, by its first request. */
const since = new WeakMap<Caller, number>()

/** Makes a request, and has the oracle judge what becomes of it. */
export async function ask(caller: Caller, asked: Asked): Promise<Outcome> {
  const { around, profile, token } = caller
  const { id, method = 'POST', body, expectation } = asked
  const startedAt = performance.now()
  const callerSince = since.get(caller) ?? startedAt
  since.set(caller, callerSince)
  const call: Call = {
    id,
    caller: caller.name,
    route: profile.path,
    needs: needsOf(profile, [...(caller.needs ?? []), ...(asked.needs ?? [])]),
    refusal: caller.refusal,
    tokenEndedAt: caller.tokenEndedAt,
    isUnsafe: asked.isUnsafe ?? method === 'POST',
    endsSession: method === 'DELETE',
    expected: profile.expected(caller.identity),
    expectation,
    digest: body?.digest,
    token,
    callerSince,
    startedAt,
  }
  around.witness.expect(call)
  const outcome = await send(around.agent, {
    url: (profile.origin ?? around.url) + profile.path,
    method,
    headers: {
      accept: 'application/json, text/event-stream',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      [CALL_HEADER]: id,
      ...body?.headers,
      ...asked.headers,
    },
    ...(body === undefined ? {} : { body: body.text }),
    ...(asked.leaveAfterMs === undefined ? {} : { leaveAfterMs: asked.leaveAfterMs }),
  })
  around.witness.settle(call, outcome)
  const requestId = [outcome.headers['x-request-id']].flat()[0]
  const verdict = judge(call, outcome, around.faults.spans)
  if (verdict !== undefined) around.findings.add(...verdict, requestId)
  const reason = outcome.status >= 400 ? ` ${reasonOf(outcome.text)}` : ''
  const whole = outcome.status === 0 ? 'left before an answer' : `${outcome.status}${reason}`
  around.tally.add(outcome.cut === undefined ? whole : 'cut')
  const servedBy = outcome.status < 400 ? mayBeServedBy(call, outcome.endedAt, around.faults.spans) : undefined
  const what = `${call.caller} at ${call.route} (${id})`
  if (requestId !== undefined) around.lines.expect(requestId, outcome.status, what, servedBy)
  return outcome
}
