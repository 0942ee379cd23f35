import { spawnSync } from 'node:child_process'
import { freePort } from '../../lab/free-port.ts'
import { install } from '../installed.ts'
import { pause } from '../load/pace.ts'
import { median } from '../measure.ts'
import { cpuOf, type Generator, memoryOf, startProcess, startProxyCommand, type Running } from '../processes.ts'
import { processTable } from '../report.ts'

const MIB = 1024 * 1024
const IDLE_MS = 3000

/** How a process that is measured is started. */
interface Way {
  start(): Promise<Running>
}

/** Resident memory in MiB: of an idle process, and the most while 16 connections are busy. */
async function memory(generator: Generator, way: Way, loadMs: number): Promise<{ idle: number; loaded: number }> {
  const one = await way.start()
  try {
    await pause(IDLE_MS)
    const idle = memoryOf(one.pid)
    let loaded = 0
    const timer = setInterval(() => (loaded = Math.max(loaded, memoryOf(one.pid))), 50)
    await generator.ask({ kind: 'load', url: one.url, size: 1024, connections: 16, ms: loadMs })
    clearInterval(timer)
    return { idle: idle / MIB, loaded: loaded / MIB }
  } finally {
    await one.stop()
  }
}

/** Milliseconds from the start of a process until it accepts a connection, by the clock and of CPU time in all its threads. */
async function startTime(way: Way): Promise<{ wall: number; cpu: number }> {
  const from = performance.now()
  const one = await way.start()
  const took = { wall: performance.now() - from, cpu: cpuOf(one.pid) / 1e6 }
  await one.stop()
  return took
}

/** Milliseconds of a command from its start to its end. */
function runTime(argv: readonly string[]): number {
  const from = performance.now()
  const { status } = spawnSync(process.execPath, argv, { stdio: 'ignore' })
  if (status !== 0) throw new Error(`${argv.join(' ')} ended with ${status}`)
  return performance.now() - from
}

/** Medians of rounds, and the median of the rounds' own ratios. */
const compared = (own: readonly number[], bare: readonly number[]): { value: number; bare: number; ratio: number } => ({
  value: median(own),
  bare: median(bare),
  ratio: median(own.map((value, round) => value / (bare[round] ?? Number.NaN))),
})

/**
 * Cost of a process beside its requests, against the bare proxy and an empty program, alternating: memory with one
 * `bearerToken` route, start to listening, `extauth version`. The program is built and started as its package is. Gives a table.
 */
export async function runProcessCost(
  generator: Generator,
  backend: string,
  { rounds, loadMs }: { readonly rounds: number; readonly loadMs: number },
): Promise<string> {
  const installed = install(new URL('../..', import.meta.url).pathname)
  try {
    const bare: Way = {
      async start() {
        const port = await freePort()
        return startProcess([installed.bare, backend, String(port)], port, '/mcp')
      },
    }
    const own: Way = {
      async start() {
        const one = await startProxyCommand({ backend, types: ['bearerToken'], launcher: installed.launcher })
        return { ...one, url: `${one.url}/bearerToken` }
      },
    }
    // Node's compile cache of a first start is kept when the process exits normally.
    runTime([installed.launcher, 'version'])
    await (await own.start()).stop()
    const idle: [number[], number[]] = [[], []]
    const loaded: [number[], number[]] = [[], []]
    const starts: [number[], number[]] = [[], []]
    const startCpu: [number[], number[]] = [[], []]
    const versions: [number[], number[]] = [[], []]
    for (let round = 0; round < rounds; round++) {
      for (const side of round % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const)) {
        const way = side === 0 ? own : bare
        const held = await memory(generator, way, loadMs)
        idle[side].push(held.idle)
        loaded[side].push(held.loaded)
        for (let time = 0; time < 3; time++) {
          const { wall, cpu } = await startTime(way)
          starts[side].push(wall)
          startCpu[side].push(cpu)
          versions[side].push(runTime(side === 0 ? [installed.launcher, 'version'] : ['-e', '0']))
        }
      }
    }
    return processTable([
      { what: 'memory, idle', unit: 'MiB', budget: 1.3, ...compared(...idle) },
      { what: 'memory, 16 busy connections', unit: 'MiB', budget: 1.3, ...compared(...loaded) },
      { what: 'start to listening', unit: 'ms', budget: 1.5, ...compared(...starts) },
      { what: 'start to listening, CPU', unit: 'ms', budget: 1.15, ...compared(...startCpu) },
      { what: '`extauth version`, against `node -e 0`', unit: 'ms', budget: 1.5, ...compared(...versions) },
    ])
  } finally {
    installed.remove()
  }
}
