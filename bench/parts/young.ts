import { pause } from '../load/pace.ts'
import { type LoadFigures, measureLoad, type Subject } from '../measure.ts'
import { type Generator, memoryOf, type Running, startProxyCommand } from '../processes.ts'
import { table } from '../report.ts'

const MIB = 1024 * 1024
/** `--max-semi-space-size` in MiB; undefined: V8's default. */
const SIZES = [undefined, 8, 4, 2, 1] as const
const SHAPES = [
  { size: 1024, connections: 16 },
  { size: 1024, connections: 64 },
] as const
const WARM_MS = 2500
/** Pause after the load before memory is read again. */
const REST_MS = 30_000

/**
 * Cost of a request, and memory of the process idle, under load and half a minute after it, by the limit of the space for
 * young objects. Gives a table.
 */
export async function runYoung(
  generator: Generator,
  backend: string,
  { rounds, roundMs }: { readonly rounds: number; readonly roundMs: number },
): Promise<string> {
  const running: Running[] = []
  try {
    const subjects: Subject[] = []
    for (const size of SIZES) {
      const env = size === undefined ? process.env : { ...process.env, NODE_OPTIONS: `--max-semi-space-size=${size}` }
      const proxy = await startProxyCommand({ backend, types: ['bearerToken'], env })
      running.push(proxy)
      subjects.push({
        name: size === undefined ? 'default' : `${size} MiB`,
        url: `${proxy.url}/bearerToken`,
        pid: proxy.pid,
      })
    }
    const memory = (): number[] => running.map(({ pid }) => memoryOf(pid) / MIB)
    await pause(REST_MS)
    const idle = memory()
    for (const subject of subjects)
      for (const shape of SHAPES) await generator.ask({ kind: 'load', ...shape, ms: WARM_MS, ...subject })
    const costs: ReadonlyMap<string, LoadFigures>[] = []
    for (const shape of SHAPES)
      costs.push(await measureLoad(generator, subjects, 'default', { ...shape, ms: roundMs }, rounds))
    const loaded = memory()
    await pause(REST_MS)
    const rested = memory()
    const rows = subjects.map(({ name }, at) => {
      const cost = costs.flatMap((figures) => {
        const { cpuMicros = Number.NaN, pairedRatio = Number.NaN } = figures.get(name) ?? {}
        return [cpuMicros.toFixed(1), pairedRatio.toFixed(2)]
      })
      const held = [idle, loaded, rested].map((all) => (all[at] ?? Number.NaN).toFixed(0))
      return [name].concat(cost, held)
    })
    const head = ['semi-space at most', ...SHAPES.flatMap(({ connections }) => [`µs, ${connections} connections`, '×'])]
    return `**Young generation** (1 KiB POST to \`bearerToken\`, ${rounds} rounds; memory in MiB)\n\n${table([...head, 'idle', 'after the load', 'half a minute later'], rows)}`
  } finally {
    await Promise.all(running.map((one) => one.stop()))
  }
}
