import { measureLoad, type Subject } from '../measure.ts'
import { type Generator, type Running, startProxyCommand } from '../processes.ts'
import { workersTable } from '../report.ts'

/** So many that both workers have enough to do: with few connections each request wakes a process. */
const SHAPE = { size: 1024, connections: 64 }
const ONE = 'one process'
const TWO = '`--workers 2`'

/**
 * Gain of a second worker: the same requests through one process and through two. Load generator and backend share the
 * cores, so the requests per second that two free cores would carry follow from what one request costs. Gives a table.
 */
export async function runWorkers(
  generator: Generator,
  backend: string,
  { rounds, roundMs }: { readonly rounds: number; readonly roundMs: number },
): Promise<string> {
  const running: Running[] = []
  try {
    const subjects: Subject[] = []
    for (const [name, workers] of [
      [ONE, undefined],
      [TWO, 2],
    ] as const) {
      const proxy = await startProxyCommand({ backend, types: ['bearerToken'], ...(workers && { workers }) })
      running.push(proxy)
      subjects.push({ name, url: `${proxy.url}/bearerToken`, pid: proxy.pid })
    }
    for (const subject of subjects) await generator.ask({ kind: 'load', ...SHAPE, ms: 2500, ...subject })
    return workersTable(ONE, await measureLoad(generator, subjects, ONE, { ...SHAPE, ms: roundMs }, rounds))
  } finally {
    await Promise.all(running.map((one) => one.stop()))
  }
}
