import { setTimeout as delay } from 'node:timers/promises'
import { createTally, type Surroundings } from './callers/caller.ts'
import { createAgent } from './callers/client.ts'
import { startCrowd } from './callers/crowd.ts'
import { createPeople } from './callers/people.ts'
import { profilesOf, registryProfile } from './callers/routes.ts'
import { change } from './changes.ts'
import { FAULTS } from './faults/list.ts'
import { plan, play } from './faults/schedule.ts'
import { growthOf } from './growth/judge.ts'
import { keyProblems, kindsOf } from './growth/keys.ts'
import { memoryAndDescriptorsOf, type Sample, takeSamples } from './growth/sample.ts'
import { createFaultLog, type FaultLog } from './oracle/excuses.ts'
import { createFindings } from './oracle/findings.ts'
import { createLines } from './oracle/lines.ts'
import { createMarks } from './oracle/marks.ts'
import { type Searched, searchHeap, searchPages, searchStore } from './oracle/search.ts'
import { createWitness } from './oracle/witness.ts'
import { createRandom } from './random.ts'
import { findingText } from './report/text.ts'
import { machineOf, reportedFaults, type RunResult, sorted, withDetails } from './result.ts'
import { REPLICA_PARTS, watchStalls } from './stalls.ts'
import { REGISTRY_PATH } from './world/registry.ts'
import { LOGIN_USERS, PEOPLE } from './world/services.ts'
import type { Program } from './world/program.ts'
import { openWorld, type Watching, type World } from './world/world.ts'

export interface RunOptions {
  readonly seed: string
  readonly hours: number
  readonly callers: number
  /** Seconds from one fault to the next. */
  readonly faultEverySeconds: number
  /** Only faults whose name has one of these in it. */
  readonly only?: readonly string[] | undefined
  /** A folder in which what the processes held at the end is kept. Default: it is looked through, and thrown away. */
  readonly heaps?: string | undefined
  readonly program: Program
  readonly say: (text: string) => void
  /** Breaks it off. */
  readonly signal: AbortSignal
}

/** A line that has not come after so long is missing. */
const LINE_MS = 60_000
const HOUSEKEEPING_MS = 5_000
const DISCONNECT_MS = 30_000
const TELL_EVERY_MS = 60_000
const MIB = 1024 * 1024
/** A delayed request may still arrive long after the response. */
const REMEMBERED_MS = 120_000
const SAMPLES_IN_A_RUN = 240
const LEAST_BETWEEN_SAMPLES_MS = 2_000

/** A run, from the start of all processes to their end. */
export async function run(options: RunOptions): Promise<RunResult> {
  let startedAt = performance.now()
  const elapsedMs = (): number => performance.now() - startedAt
  const faults = createFaultLog()
  const findings = createFindings(
    () => Math.round(elapsedMs() / 100) / 10,
    () => faults.names(),
    (finding) => options.say(`FAILURE ${findingText(finding)}`),
  )
  const marks = createMarks()
  const watching = {
    findings,
    marks,
    witness: createWitness(findings, marks, faults.spans),
    lines: createLines(findings, marks),
  }
  const world = await openWorld(watching, options.program, options.heaps)
  const agent = createAgent()
  try {
    startedAt = performance.now()
    const living = live(options, { world, agent, watching, faults, startedAt, elapsedMs })
    // Not awaited when the run is aborted.
    living.catch(() => undefined)
    return await Promise.race([living, brokenOff(options.signal)])
  } finally {
    await agent.destroy()
    await world.close()
  }
}

/** Rejects with the reason when a signal or the clock ends a run early. */
function brokenOff(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    const end = (): void => reject(signal.reason as Error)
    if (signal.aborted) end()
    else signal.addEventListener('abort', end, { once: true })
  })
}

interface Started {
  readonly world: World
  readonly agent: ReturnType<typeof createAgent>
  readonly watching: Watching
  readonly faults: FaultLog
  readonly startedAt: number
  readonly elapsedMs: () => number
}

async function live(options: RunOptions, started: Started): Promise<RunResult> {
  const { seed, callers, say } = options
  const { world, agent, watching, faults, startedAt, elapsedMs } = started
  const { findings, marks, witness, lines } = watching
  const runMs = options.hours * 3_600_000
  const random = createRandom(seed)
  const over = new AbortController()
  const pause = (ms: number): Promise<void> => delay(ms, undefined, { signal: over.signal }).catch(() => undefined)
  const until = (ms: number): Promise<void> => pause(Math.max(0, ms - elapsedMs()))
  const isOver = (): boolean => over.signal.aborted
  const tally = createTally()
  const stalls = watchStalls(faults, () => [
    ...world.replicas.map(({ pid }) => ({ pid, parts: REPLICA_PARTS })),
    { pid: world.registry.pid, parts: ['provider'] },
  ])
  const around: Surroundings = {
    url: world.balancer.url,
    agent,
    profiles: [...profilesOf(world.configuration), registryProfile(world.registry.url, REGISTRY_PATH)],
    identity: world.services.identity,
    witness,
    lines,
    findings,
    faults,
    marks,
    tally,
    people: createPeople(PEOPLE, {
      revoke: (subject) => world.services.workspace.revoke(subject),
      disconnect: (subject) => disconnect(world, subject),
    }),
    pause,
    think: (ms) => pause(ms * stalls.pace()),
    isOver,
  }
  const report = (text: string): void => say(`${(elapsedMs() / 1000).toFixed(1).padStart(7)} s ${text}`)
  const crowd = startCrowd(around, { size: callers, random: random.of('callers'), users: LOGIN_USERS })
  const changing = change({ world, findings, faults, runMs, pause, isOver })
  const housekeeping = setInterval(() => {
    witness.forget(performance.now() - REMEMBERED_MS)
    lines.check(performance.now() - LINE_MS, (at) => isLost(faults, at))
  }, HOUSEKEEPING_MS)
  const sampling = sample(world, elapsedMs, Math.max(LEAST_BETWEEN_SAMPLES_MS, runMs / SAMPLES_IN_A_RUN), over.signal)

  const telling = setInterval(() => {
    const answers = [...tally.counts.values()].reduce((sum, count) => sum + count, 0)
    const [{ pid, liveBytes = 0 }] = world.replicas
    const memory = Math.round(memoryAndDescriptorsOf(pid)?.memory ?? 0)
    const live = Math.round(liveBytes / MIB)
    const counts = `${answers} answers, ${findings.count} failures, ${crowd.lives} callers so far`
    const noTime = Math.round(stalls.totalMs() / 1_000)
    report(`${counts}, ${memory} MiB in replica-1 (${live} live), the machine gave no time for ${noTime} s`)
  }, TELL_EVERY_MS)
  const kinds = FAULTS.filter(({ name }) => options.only?.some((text) => name.includes(text)) !== false)
  const planned = plan(kinds, random.of('faults'), { runMs, everyMs: options.faultEverySeconds * 1000 })
  await play(planned, { world, log: faults, findings, random, until, say: report })
  await until(runMs)
  over.abort()
  await crowd.ended
  const seconds = Math.round(elapsedMs() / 1000)
  const [samples, { done }] = await Promise.all([sampling, changing])
  clearInterval(housekeeping)
  clearInterval(telling)
  await delay(HOUSEKEEPING_MS)
  stalls.stop()
  lines.check(Infinity, (at) => isLost(faults, at))

  const searched: Searched = { pages: 0, values: 0, heapBytes: 0 }
  await searchPages([...world.replicas, world.registry], marks, findings, searched)
  await searchStore(world, marks, findings, searched)
  for (const one of [...world.replicas, world.registry])
    await searchHeap(one, marks, findings, searched, options.heaps !== undefined)
  if (searched.pages === 0 || searched.values === 0 || searched.heapBytes === 0)
    findings.add('leaked secret', `nothing was there to be searched: ${JSON.stringify(searched)}`)
  const keys = kindsOf(await world.store.lives())
  const logins = ['login', 'login failed', 'login by a clock that is ahead'].reduce(
    (sum, name) => sum + (tally.counts.get(name) ?? 0),
    0,
  )
  for (const problem of keyProblems(keys, {
    lives: crowd.lives,
    logins,
    people: PEOPLE.length,
    connected: (tally.counts.get('connected') ?? 0) + (tally.counts.get('connecting failed') ?? 0),
  }))
    findings.add('growth', problem)
  const growth = growthOf(samples, seconds)
  for (const { measure, of, from, to, bound } of growth.filter(({ isKept }) => !isKept))
    findings.add(
      'growth',
      `${measure} of ${of}: from ${from.toFixed(0)} to ${to.toFixed(0)}, at most ${bound?.toFixed(0)} more`,
    )
  return {
    seed,
    version: options.program.version,
    machine: machineOf(),
    seconds,
    callers,
    lives: crowd.lives,
    stalledSeconds: Math.round(stalls.totalMs() / 100) / 10,
    answers: sorted(tally.counts),
    logLines: lines.count,
    warnings: sorted(lines.warnings),
    secrets: marks.count,
    searched,
    changes: done,
    faults: reportedFaults(faults, startedAt),
    growth,
    keys,
    samples,
    findings: withDetails(findings, lines),
    failures: findings.count,
  }
}

/** Ends the connections of a caller, at the admin listener of the replica that is never ended. */
async function disconnect({ replicas: [{ adminUrl }], services }: World, subject: string): Promise<void> {
  const query = new URLSearchParams({ issuer: services.gates.identity.url, subject })
  const response = await fetch(`${adminUrl}/connections?${query.toString()}`, {
    method: 'DELETE',
    signal: AbortSignal.timeout(DISCONNECT_MS),
  })
  if (response.status !== 200) throw new Error(`status ${response.status}: ${await response.text()}`)
}

/** The last lines of a replica that is killed are lost with it. */
const isLost = (faults: FaultLog, at: number): boolean =>
  faults.spans.some(({ name, from, until = Infinity }) => name === 'replica SIGKILL' && at > from - 1_000 && at < until)

async function sample(
  world: World,
  elapsedMs: () => number,
  everyMs: number,
  signal: AbortSignal,
): Promise<readonly Sample[]> {
  const samples: Sample[] = []
  while (!signal.aborted) {
    samples.push(...(await takeSamples(world, Math.round(elapsedMs() / 100) / 10)))
    await delay(everyMs, undefined, { signal }).catch(() => undefined)
  }
  return samples
}
