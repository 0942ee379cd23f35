import { pause } from '../load/pace.ts'
import { type Generator, memoryOf, processesOf, shareOf, startProxyCommand } from '../processes.ts'
import { table } from '../report.ts'

const MIB = 1024 * 1024
const SHAPE = { size: 1024, connections: 64 }

/** Memory of all processes of a proxy in MiB: what is theirs alone with their part of what they share, and its sum as `ps` has it. */
interface Held {
  readonly own: number
  readonly resident: number
}

function heldBy(pid: number): Held {
  const all = processesOf(pid)
  const sum = (of: (pid: number) => number): number => all.reduce((bytes, one) => bytes + of(one), 0) / MIB
  return { own: sum(shareOf), resident: sum(memoryOf) }
}

/** Memory of one process and of two workers with their supervisor: idle, under load, and half a minute after it. Gives a table. */
export async function runWorkersMemory(
  generator: Generator,
  backend: string,
  { workersMs, restMs }: { readonly workersMs: number; readonly restMs: number },
): Promise<string> {
  const rows: string[][] = []
  for (const [name, workers] of [
    ['one process', undefined],
    ['`--workers 2`', 2],
  ] as const) {
    const proxy = await startProxyCommand({ backend, types: ['bearerToken'], ...(workers && { workers }) })
    try {
      await pause(restMs)
      const idle = heldBy(proxy.pid)
      let loaded: Held = idle
      const timer = setInterval(() => {
        const now = heldBy(proxy.pid)
        if (now.own > loaded.own) loaded = now
      }, 200)
      await generator.ask({ kind: 'load', url: `${proxy.url}/bearerToken`, ...SHAPE, ms: workersMs })
      clearInterval(timer)
      await pause(restMs)
      const rested = heldBy(proxy.pid)
      rows.push([
        name,
        ...[idle, loaded, rested].map(({ own, resident }) => `${own.toFixed(0)} (${resident.toFixed(0)})`),
      ])
    } finally {
      await proxy.stop()
    }
  }
  return [
    '**Memory of workers** in MiB, proportional (pages that processes share are counted once; in brackets the sum of what each has resident)',
    table(['', 'idle', '64 busy connections', 'half a minute after'], rows),
  ].join('\n\n')
}
