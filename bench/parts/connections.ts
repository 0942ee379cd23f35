import path from 'node:path'
import { freePort } from '../../lab/free-port.ts'
import { inspectable } from '../inspector.ts'
import { install, type Installed } from '../installed.ts'
import { pause } from '../load/pace.ts'
import { measureIdle, median } from '../measure.ts'
import { type Generator, memoryOf, type Running, startProcess, startProxyCommand } from '../processes.ts'
import { table } from '../report.ts'

const MIB = 1024 * 1024
const KIB = 1024
const SETTLED_MS = 1000

export interface ConnectionsOptions {
  readonly rounds: number
  readonly loadMs: number
  /** Idle event streams. */
  readonly streams: number
  /** Connections that are kept after a request: nearly as many as are taken by default. */
  readonly kept: number
  /** Another checkout of this project, measured in the same rounds. */
  readonly against: string | undefined
}

/** How a process is started that is measured, and what it may need at most. */
interface Way {
  readonly name: string
  start(env: NodeJS.ProcessEnv): Promise<Running>
}

/** The most that the program may take, where there is a bound: MiB of the process, KiB of each stream. */
const BUDGET = ['130', '160', '20', '–']

/**
 * Memory of connections, in a fresh process each time, as programs are installed: the most while 16 and 256 of
 * them are busy, an idle event stream, a connection that is kept after a request. Gives a table.
 */
export async function runConnections(
  generator: Generator,
  backend: string,
  options: ConnectionsOptions,
): Promise<string> {
  const installed = [install(path.resolve(import.meta.dirname, '../..'))]
  try {
    if (options.against !== undefined) installed.push(install(path.resolve(options.against)))
    const ways = waysOf(installed, backend)
    const seen = new Map<string, number[][]>(ways.map(({ name }) => [name, []]))
    for (let round = 0; round < options.rounds; round++) {
      const shift = round % ways.length
      for (const way of [...ways.slice(shift), ...ways.slice(0, shift)])
        seen.get(way.name)?.push(await oneRound(generator, way, options))
    }
    const rows = ways.map(({ name }) => {
      const own = seen.get(name) ?? []
      const middle = (column: number): number => median(own.map((round) => round[column] ?? Number.NaN))
      return [name, middle(0).toFixed(0), middle(1).toFixed(0), middle(2).toFixed(1), middle(3).toFixed(1)]
    })
    const head = ['', 'MiB, 16 busy', 'MiB, 256 busy', 'KiB/idle stream', 'KiB/kept connection']
    const { rounds, streams, kept } = options
    const title = `**Memory of connections** (POST of 1 KiB each way, \`bearerToken\`; ${streams} idle event streams, ${kept} kept connections; medians of ${rounds} rounds)`
    return `${title}\n\n${table(head, [...rows, ['extauth, at most', ...BUDGET]])}`
  } finally {
    for (const one of installed) one.remove()
  }
}

function waysOf(installed: readonly Installed[], backend: string): Way[] {
  const plain = (name: string, file: string | undefined): Way => ({
    name,
    async start(env) {
      const port = await freePort()
      return startProcess([file ?? '', backend, String(port)], port, '/mcp', { env })
    },
  })
  const own = installed.map(({ launcher }, index): Way => ({
    name: index === 0 ? 'extauth' : 'the other extauth',
    async start(env) {
      const one = await startProxyCommand({ backend, types: ['bearerToken'], launcher, env })
      return { ...one, url: `${one.url}/bearerToken` }
    },
  }))
  return [plain('bare undici', installed[0]?.bare), plain('bare sockets', installed[0]?.floor), ...own]
}

/** The four figures of a way, in the order of the columns. */
async function oneRound(generator: Generator, way: Way, options: ConnectionsOptions): Promise<number[]> {
  return [
    await busy(generator, way, 16, options.loadMs),
    await busy(generator, way, 256, options.loadMs),
    await idle(generator, way, 'open-idle', options.streams),
    await idle(generator, way, 'open-kept', options.kept),
  ]
}

async function busy(generator: Generator, way: Way, connections: number, ms: number): Promise<number> {
  const one = await way.start(process.env)
  try {
    let most = 0
    const timer = setInterval(() => (most = Math.max(most, memoryOf(one.pid))), 50)
    await generator.ask({ kind: 'load', url: one.url, size: 1024, connections, ms })
    clearInterval(timer)
    return most / MIB
  } finally {
    await one.stop()
  }
}

async function idle(generator: Generator, way: Way, kind: 'open-idle' | 'open-kept', count: number): Promise<number> {
  const port = await freePort()
  const one = await way.start(inspectable(port))
  try {
    await pause(SETTLED_MS)
    return (await measureIdle(generator, one, port, kind, count)) / KIB
  } finally {
    await one.stop()
  }
}
