import path from 'node:path'
import { type LoadFigures, measureLoad, type Subject } from '../measure.ts'
import { type Generator, type Running, startProxyCommand } from '../processes.ts'
import { table } from '../report.ts'

const SHAPE = { size: 1024, connections: 16 }
const OFF = 'inspector off'
const MODES = ['heads', 'bodies'] as const

export interface InspectorOptions {
  readonly rounds: number
  readonly roundMs: number
  /** Another checkout of this project, such as one without an inspector, measured in the same rounds. */
  readonly against: string | undefined
}

/** Cost of the inspector: the same requests with it off, with heads and with bodies. Returns a table. */
export async function runInspector(generator: Generator, backend: string, options: InspectorOptions): Promise<string> {
  const running: Running[] = []
  const subjects: Subject[] = []
  const add = async (name: string, more: Partial<Parameters<typeof startProxyCommand>[0]>): Promise<void> => {
    const proxy = await startProxyCommand({ backend, types: ['bearerToken'], ...more })
    running.push(proxy)
    subjects.push({ name, url: `${proxy.url}/bearerToken`, pid: proxy.pid })
  }
  try {
    await add(OFF, {})
    for (const mode of MODES) await add(mode, { inspector: mode })
    if (options.against !== undefined)
      await add('the other extauth', { launcher: path.resolve(options.against, 'bin/extauth.cjs') })
    for (const subject of subjects) await generator.ask({ kind: 'load', ...SHAPE, ms: 2500, ...subject })
    return inspectorTable(
      await measureLoad(generator, subjects, OFF, { ...SHAPE, ms: options.roundMs }, options.rounds),
    )
  } finally {
    await Promise.all(running.map((one) => one.stop()))
  }
}

function inspectorTable(figures: ReadonlyMap<string, LoadFigures>): string {
  const rows = [...figures].map(([name, { cpuMicros, pairedRatio, p50Ms }]) => [
    name,
    cpuMicros.toFixed(0),
    pairedRatio.toFixed(2),
    p50Ms.toFixed(2),
  ])
  const title = '**The inspector** (1 KiB POST to `bearerToken`, 16 connections; `heads` at most 1.3 × off)'
  return `${title}\n\n${table(['', 'CPU µs per request', '× off', 'median ms'], rows)}`
}
