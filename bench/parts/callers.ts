import { startCaddy } from '../caddy.ts'
import { type Issuer, startIssuer } from '../callers.ts'
import { figuresOf, loadRounds, type Round, type Subject } from '../measure.ts'
import { forkScript, type Generator, type Running, startProxyCommand, launchersOf } from '../processes.ts'
import { callersTable, type CallersRatios } from '../report.ts'

const CALLERS = 200
const BARE = 'bare undici'
const FLOOR = 'bare sockets'
const SAME = ', the same tokens'
const WARM_MS = 2500

export interface CallersOptions {
  /** How often all processes are restarted: two starts of one program differ by some hundredths. */
  readonly starts: number
  /** Of each start. */
  readonly rounds: number
  readonly roundMs: number
  /** Bytes each way. */
  readonly size: number
  readonly connections: number
  /** Another checkout of this project, measured in the same rounds. */
  readonly against: string | undefined
  /** The program of Caddy, measured in the same rounds. */
  readonly caddy: string | undefined
}

/**
 * Cost of cached callers: 200 of them with realistic tokens against anonymous ones, each against the bare
 * proxy and the floor that get the same requests, and beside Caddy if available. Returns a table.
 */
export async function runCallers(generator: Generator, backend: string, options: CallersOptions): Promise<string> {
  const { rounds, size, connections } = options
  const shape = { size, connections, ms: options.roundMs }
  const issuer = await startIssuer()
  const authorizations = issuer.tokens(CALLERS).map((token) => `Bearer ${token}`)
  let seen = new Map<string, Round[]>()
  const authorized = new Set<string>()
  try {
    for (let start = 0; start < options.starts; start++) {
      const running: Running[] = []
      try {
        const subjects = await startSubjects(running, issuer, authorizations, backend, options)
        for (const one of subjects) if (one.authorizations !== undefined) authorized.add(one.name)
        // Compiled code is measured, not compiling; and every token has been verified once.
        for (const subject of subjects) await generator.ask({ kind: 'load', ...shape, ...subject, ms: WARM_MS })
        seen = await loadRounds(generator, subjects, shape, rounds, seen)
      } finally {
        await Promise.all(running.map((one) => one.stop()))
      }
    }
  } finally {
    issuer.close()
  }
  const against = (base: string): CallersRatios => {
    const [without, same] = [figuresOf(seen, base), figuresOf(seen, base + SAME)]
    return (name) => (authorized.has(name) ? same : without).get(name)?.pairedRatio ?? Number.NaN
  }
  const shown = { size, connections, rounds: seen.get(BARE)?.length ?? 0 }
  return callersTable(shown, figuresOf(seen, BARE), { bare: against(BARE), floor: against(FLOOR) })
}

/** Starts what is measured; `running` gets each process as soon as it runs. */
async function startSubjects(
  running: Running[],
  issuer: Issuer,
  authorizations: readonly string[],
  backend: string,
  options: CallersOptions,
): Promise<Subject[]> {
  const start = async (starting: Promise<Running>): Promise<Running> => {
    const one = await starting
    running.push(one)
    return one
  }
  const subjects: Subject[] = []
  for (const [name, script] of [
    [BARE, 'proxies/bare.ts'],
    [FLOOR, 'proxies/floor.ts'],
  ] as const) {
    const { url, pid } = await start(forkScript(script, [backend]))
    subjects.push({ name, url: `${url}/mcp`, pid }, { name: name + SAME, url: `${url}/mcp`, pid, authorizations })
  }
  if (options.caddy !== undefined) {
    const { url, pid } = await start(startCaddy(options.caddy, backend))
    subjects.push({ name: 'Caddy, anonymous callers', url: `${url}/mcp`, pid })
  }
  for (const [name, launcher] of launchersOf(options.against)) {
    const { url, pid } = await start(startProxyCommand({ backend, issuer, types: ['bearerToken'], launcher }))
    subjects.push(
      { name: `${name}, anonymous callers`, url: `${url}/bearerToken`, pid },
      { name: `${name}, ${CALLERS} verified callers`, url: `${url}/verified`, pid, authorizations },
    )
  }
  return subjects
}
