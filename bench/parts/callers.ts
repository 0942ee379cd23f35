import path from 'node:path'
import { startIssuer } from '../callers.ts'
import { measureLoad, type Subject } from '../measure.ts'
import { forkScript, type Generator, type Running, startProxyCommand } from '../processes.ts'
import { callersTable } from '../report.ts'

const CALLERS = 200
const SHAPE = { size: 1024, connections: 16 }
const BARE = 'bare undici'

export interface CallersOptions {
  readonly rounds: number
  readonly roundMs: number
  /** Another checkout of this project, measured in the same rounds. */
  readonly against: string | undefined
}

/**
 * What remembered callers cost: 200 of them with tokens as in real use against nobody in particular, both against the bare
 * proxy, which is given the same tokens once and none once. Gives a table.
 */
export async function runCallers(generator: Generator, backend: string, options: CallersOptions): Promise<string> {
  const issuer = await startIssuer()
  const running: Running[] = []
  try {
    const authorizations = issuer.tokens(CALLERS).map((token) => `Bearer ${token}`)
    const bare = await forkScript('proxies/bare.ts', [backend])
    running.push(bare)
    const subjects: Subject[] = [
      { name: BARE, url: `${bare.url}/mcp`, pid: bare.pid },
      { name: `${BARE}, the same tokens`, url: `${bare.url}/mcp`, pid: bare.pid, authorizations },
    ]
    const launchers = [
      ['extauth', undefined],
      ...(options.against === undefined ? [] : [['the other extauth', `${options.against}/bin/extauth.cjs`] as const]),
    ] as const
    for (const [name, launcher] of launchers) {
      const found = launcher === undefined ? undefined : path.resolve(launcher)
      const proxy = await startProxyCommand({ backend, issuer, types: ['bearerToken'], launcher: found })
      running.push(proxy)
      const { url, pid } = proxy
      subjects.push(
        { name: `${name}, anonymous callers`, url: `${url}/bearerToken`, pid },
        { name: `${name}, ${CALLERS} verified callers`, url: `${url}/verified`, pid, authorizations },
      )
    }
    // Compiled code is measured, not compiling; and every token has been verified once.
    for (const subject of subjects) await generator.ask({ kind: 'load', ...SHAPE, ms: 1500, ...subject })
    const figures = await measureLoad(generator, subjects, BARE, { ...SHAPE, ms: options.roundMs }, options.rounds)
    return callersTable(options.rounds, figures)
  } finally {
    await Promise.all(running.map((one) => one.stop()))
    issuer.close()
  }
}
