import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type LoadFigures, measureLoad, type Subject } from '../measure.ts'
import { type Generator, type Running, startProxyCommand } from '../processes.ts'
import { table } from '../report.ts'

const SHAPE = { size: 1024, connections: 16 }
const OFF = 'traces off'
const SAMPLED = '10 % of the requests sampled'

/** Cost of traces: the same requests without them, and with one in ten sampled and exported. Returns a table. */
export async function runTraces(
  generator: Generator,
  backend: string,
  { rounds, roundMs }: { readonly rounds: number; readonly roundMs: number },
): Promise<string> {
  let exported = 0
  const receiver = createServer((request, response) => {
    request.on('data', (chunk: Buffer) => (exported += chunk.length))
    request.on('end', () => response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end())
  })
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  const { port } = receiver.address() as AddressInfo
  const sampling = {
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
    OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '0.1',
  }
  const running: Running[] = []
  try {
    const subjects: Subject[] = []
    for (const [name, env] of [
      [OFF, {}],
      [SAMPLED, sampling],
    ] as const) {
      const proxy = await startProxyCommand({ backend, types: ['bearerToken'], env: { ...process.env, ...env } })
      running.push(proxy)
      subjects.push({ name, url: `${proxy.url}/bearerToken`, pid: proxy.pid })
    }
    for (const subject of subjects) await generator.ask({ kind: 'load', ...SHAPE, ms: 2500, ...subject })
    const figures = await measureLoad(generator, subjects, OFF, { ...SHAPE, ms: roundMs }, rounds)
    await Promise.all(running.splice(0).map((one) => one.stop()))
    if (exported === 0) throw new Error('no trace was exported')
    return tracesTable(figures)
  } finally {
    await Promise.all(running.map((one) => one.stop()))
    receiver.closeAllConnections()
    receiver.close()
  }
}

function tracesTable(figures: ReadonlyMap<string, LoadFigures>): string {
  const rows = [...figures].map(([name, { cpuMicros, pairedRatio }]) => [
    name,
    cpuMicros.toFixed(0),
    pairedRatio.toFixed(2),
  ])
  const title = '**Traces** (1 KiB POST to `bearerToken`, 16 connections; with 10 % at most 1.25 × off)'
  return `${title}\n\n${table(['', 'CPU µs per request', '× off'], rows)}`
}
