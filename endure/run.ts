import { setTimeout as delay } from 'node:timers/promises'
import { STALL, watchOwnStalls } from './stalls.ts'
import { createTally, type Surroundings } from './callers/caller.ts'
import { createAgent } from './callers/client.ts'
import { startCrowd } from './callers/crowd.ts'
import { profilesOf } from './callers/routes.ts'
import { FAULTS } from './faults/list.ts'
import { plan, play } from './faults/schedule.ts'
import { createFaultLog } from './oracle/excuses.ts'
import { createFindings, type Finding } from './oracle/findings.ts'
import { createLines } from './oracle/lines.ts'
import { createMarks } from './oracle/marks.ts'
import { createWitness } from './oracle/witness.ts'
import { createRandom } from './random.ts'
import { LOGIN_USERS } from './world/stand-ins.ts'
import { openWorld } from './world/world.ts'
import { searchForMarks } from './oracle/search.ts'

export interface RunOptions {
  readonly seed: string
  readonly hours: number
  readonly callers: number
  /** Seconds from one fault to the next. */
  readonly faultEverySeconds: number
  /** Only faults whose name has this in it. */
  readonly only?: string | undefined
  readonly say: (text: string) => void
}

/** What a run has shown. */
export interface RunResult {
  readonly seed: string
  readonly seconds: number
  readonly callers: number
  readonly lives: number
  /** How long the harness itself stood still; nothing is judged by what happened then. */
  readonly stalledSeconds: number
  readonly answers: Readonly<Record<string, number>>
  readonly logLines: number
  readonly warnings: Readonly<Record<string, number>>
  readonly secrets: number
  readonly faults: readonly { readonly name: string; readonly atSeconds: number; readonly seconds: number }[]
  readonly findings: readonly Finding[]
  /** Also those that are not kept. */
  readonly failures: number
}

/** A line that has not come after so long is missing. */
const LINE_MS = 15_000
const HOUSEKEEPING_MS = 5_000
/** Long after an answer a request may still arrive that was held back on its way. */
const REMEMBERED_MS = 120_000

/** One run, from the start of everything to its end. */
export async function run(options: RunOptions): Promise<RunResult> {
  const { seed, callers, say } = options
  const runMs = options.hours * 3_600_000
  const random = createRandom(seed)
  const faults = createFaultLog()
  let startedAt = performance.now()
  const elapsedMs = (): number => performance.now() - startedAt
  const findings = createFindings(
    () => Math.round(elapsedMs() / 100) / 10,
    () => faults.names(),
  )
  const marks = createMarks()
  const witness = createWitness(findings, marks)
  const lines = createLines(findings, marks)
  const over = new AbortController()
  const pause = (ms: number): Promise<void> => delay(ms, undefined, { signal: over.signal }).catch(() => undefined)

  const world = await openWorld({ findings, lines, marks, witness })
  const agent = createAgent()
  try {
    startedAt = performance.now()
    const around: Surroundings = {
      url: world.balancer.url,
      agent,
      profiles: profilesOf(world.configuration),
      identity: world.standIns.identity,
      witness,
      lines,
      findings,
      faults,
      marks,
      tally: createTally(),
      pause,
      isOver: () => over.signal.aborted,
    }
    const crowd = startCrowd(around, { size: callers, random: random.of('callers'), users: LOGIN_USERS })
    // The log of a replica that is killed is lost with it.
    const stalls = watchOwnStalls(faults)
    const isExcused = (at: number): boolean =>
      faults.spans.some(
        ({ name, from, until = Infinity }) => name === 'replica SIGKILL' && at > from - 1_000 && at < until,
      )
    const housekeeping = setInterval(() => {
      witness.forget(performance.now() - REMEMBERED_MS)
      lines.check(performance.now() - LINE_MS, isExcused)
    }, HOUSEKEEPING_MS)
    const until = (ms: number): Promise<void> => pause(Math.max(0, ms - elapsedMs()))
    const kinds = FAULTS.filter(({ name }) => options.only === undefined || name.includes(options.only))
    const planned = plan(kinds, random.of('faults'), { runMs, everyMs: options.faultEverySeconds * 1000 })
    await play(planned, {
      world,
      log: faults,
      findings,
      random,
      until,
      say: (text) => say(`${stamp(elapsedMs())} ${text}`),
    })
    await until(runMs)
    over.abort()
    await crowd.ended
    clearInterval(housekeeping)
    stalls.stop()
    await delay(2_000)
    lines.check(Infinity, isExcused)
    await searchForMarks(world, marks, findings)
    return {
      seed,
      seconds: Math.round(elapsedMs() / 1000),
      callers,
      lives: crowd.lives,
      stalledSeconds: Math.round(stalls.totalMs() / 100) / 10,
      answers: sorted(around.tally.counts),
      logLines: lines.count,
      warnings: sorted(lines.warnings),
      secrets: marks.count,
      faults: faults.spans
        .filter(({ name }) => name !== STALL)
        .map(({ name, from, until: end = from }) => ({
          name,
          atSeconds: Math.round((from - startedAt) / 100) / 10,
          seconds: Math.round((end - from) / 100) / 10,
        })),
      findings: findings.all.map((finding) => {
        const detail = lines.detailOf(finding.requestId ?? '')
        return detail === undefined ? finding : Object.assign({}, finding, { what: `${finding.what} (${detail})` })
      }),
      failures: findings.count,
    }
  } finally {
    over.abort()
    await agent.destroy()
    await world.close()
  }
}

const stamp = (ms: number): string => `${(ms / 1000).toFixed(1).padStart(7)} s`

const sorted = (counts: ReadonlyMap<string, number>): Record<string, number> =>
  Object.fromEntries([...counts].toSorted(([, one], [, other]) => other - one))
