import { loadRounds, lowerQuartile, median, type Subject } from '../measure.ts'
import { forkScript, type Generator, launchersOf, type Running, startProxyCommand } from '../processes.ts'
import { table } from '../report.ts'

const GIB = 1024 ** 3
const MIB = 1024 ** 2
const BARE = 'bare undici'
/** Of each subject and round. */
const ROUND_MS = 1000
/** Two at a time: one is written while another is read. */
const CONNECTIONS = 2

export interface BodiesOptions {
  readonly rounds: number
  /** Each way. */
  readonly bytes: number
  /** Another checkout of this project, measured in the same rounds. */
  readonly against: string | undefined
}

/** Cost of large unbuffered bodies: CPU per GiB in both directions. Returns a table. */
export async function runBodies(generator: Generator, backend: string, options: BodiesOptions): Promise<string> {
  const { rounds, bytes, against } = options
  const running: Running[] = []
  const start = async (starting: Promise<Running>): Promise<Running> => {
    const one = await starting
    running.push(one)
    return one
  }
  try {
    const subjects: Subject[] = []
    for (const [name, script] of [
      [BARE, 'proxies/bare.ts'],
      ['bare sockets', 'proxies/floor.ts'],
    ] as const) {
      const { url, pid } = await start(forkScript(script, [backend]))
      subjects.push({ name, url: `${url}/mcp`, pid })
    }
    for (const [name, launcher] of launchersOf(against)) {
      const { url, pid } = await start(startProxyCommand({ backend, types: ['bearerToken'], launcher }))
      subjects.push({ name, url: `${url}/bearerToken`, pid })
    }
    const shape = { size: bytes, connections: CONNECTIONS, ms: ROUND_MS }
    for (const subject of subjects) await generator.ask({ kind: 'load', ...shape, ...subject })
    const seen = await loadRounds(generator, subjects, shape, rounds)
    const perGiB = (name: string): number[] =>
      (seen.get(name) ?? []).map(({ cpuMicros }) => (cpuMicros / 1e6 / (2 * bytes)) * GIB)
    const rows = subjects.map(({ name }) => {
      const ratios = perGiB(name).map((value, round) => value / (perGiB(BARE)[round] ?? Number.NaN))
      return [name, lowerQuartile(perGiB(name)).toFixed(2), median(ratios).toFixed(2)]
    })
    const title = `**Large bodies** (POST of ${bytes / MIB} MiB each way, ${CONNECTIONS} connections, ${rounds} rounds)`
    return `${title}\n\n${table(['', 'CPU s/GiB', '× bare (median of rounds)'], rows)}`
  } finally {
    await Promise.all(running.map((one) => one.stop()))
  }
}
