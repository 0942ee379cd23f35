import path from 'node:path'
import { startCaddy } from '../caddy.ts'
import { type Issuer, startIssuer } from '../callers.ts'
import { figuresOf, loadRounds, type Round, type Subject } from '../measure.ts'
import { forkScript, type Generator, type Running, startProxyCommand } from '../processes.ts'
import { callersTable } from '../report.ts'

const CALLERS = 200
const BARE = 'bare undici'
const WARM_MS = 2500

export interface CallersOptions {
  /** How often all processes are started anew: two starts of one program differ by some hundredths. */
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
 * What remembered callers cost: 200 of them with tokens as in real use against nobody in particular, both against the bare
 * proxy, which is given the same tokens once and none once, and beside Caddy where it is at hand. Gives a table.
 */
export async function runCallers(generator: Generator, backend: string, options: CallersOptions): Promise<string> {
  const { rounds, size, connections } = options
  const shape = { size, connections, ms: options.roundMs }
  const issuer = await startIssuer()
  const authorizations = issuer.tokens(CALLERS).map((token) => `Bearer ${token}`)
  let seen = new Map<string, Round[]>()
  try {
    for (let start = 0; start < options.starts; start++) {
      const running: Running[] = []
      try {
        const subjects = await startSubjects(running, issuer, authorizations, backend, options)
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
  return callersTable({ size, connections, rounds: seen.get(BARE)?.length ?? 0 }, figuresOf(seen, BARE))
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
  const bare = await start(forkScript('proxies/bare.ts', [backend]))
  const subjects: Subject[] = [
    { name: BARE, url: `${bare.url}/mcp`, pid: bare.pid },
    { name: `${BARE}, the same tokens`, url: `${bare.url}/mcp`, pid: bare.pid, authorizations },
  ]
  if (options.caddy !== undefined) {
    const { url, pid } = await start(startCaddy(options.caddy, backend))
    subjects.push({ name: 'Caddy, anonymous callers', url: `${url}/mcp`, pid })
  }
  const launchers = [
    ['extauth', undefined],
    ...(options.against === undefined ? [] : [['the other extauth', `${options.against}/bin/extauth.cjs`] as const]),
  ] as const
  for (const [name, launcher] of launchers) {
    const found = launcher === undefined ? undefined : path.resolve(launcher)
    const { url, pid } = await start(startProxyCommand({ backend, issuer, types: ['bearerToken'], launcher: found }))
    subjects.push(
      { name: `${name}, anonymous callers`, url: `${url}/bearerToken`, pid },
      { name: `${name}, ${CALLERS} verified callers`, url: `${url}/verified`, pid, authorizations },
    )
  }
  return subjects
}
