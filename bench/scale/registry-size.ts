import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { freePort } from '../../lab/free-port.ts'
import { pause, quantile } from '../load/pace.ts'
import { cpuOf, LAUNCHER, memoryOf, startProcess } from '../processes.ts'
import { registryEntry } from '../registry-entries.ts'
import { table } from '../report.ts'

const MIB = 1024 * 1024
const LIST = '/registry/default/v0.1/servers'
const PAGE = 100
const TIMES = 200
const WARM_TIMES = 50

interface Page {
  readonly servers: readonly object[]
  readonly metadata: { readonly nextCursor?: string }
}

async function get(url: string): Promise<Page> {
  const response = await fetch(url)
  const text = await response.text()
  if (!response.ok) throw new Error(`the registry answered ${response.status} ${text}`)
  return JSON.parse(text) as Page
}

/** Every page, one after the other. */
async function walk(
  list: string,
): Promise<{ readonly pages: number; readonly entries: number; readonly middle: string }> {
  const cursors: string[] = []
  let entries = 0
  for (let cursor: string | undefined = ''; cursor !== undefined;) {
    const { servers, metadata }: Page = await get(`${list}?limit=${PAGE}&cursor=${encodeURIComponent(cursor)}`)
    entries += servers.length
    cursor = metadata.nextCursor
    if (cursor !== undefined) cursors.push(cursor)
  }
  return { pages: cursors.length + 1, entries, middle: cursors[cursors.length >> 1] ?? '' }
}

/** Memory of a registry by its number of entries, its start time, and the cost of pages and searches. Returns a table. */
export async function runRegistrySize({
  entries: count,
  restMs,
}: {
  readonly entries: number
  readonly restMs: number
}): Promise<string> {
  const folder = mkdtempSync(path.join(tmpdir(), 'extauth-bench-registry-'))
  const file = path.join(folder, 'servers.json')
  const config = path.join(folder, 'registry.yaml')
  const servers = JSON.stringify({ servers: Array.from({ length: count }, (_, index) => registryEntry(index)) })
  writeFileSync(file, servers)
  writeFileSync(
    config,
    `auth: { mode: anonymous }\nregistries:\n  - { name: default, source: { file: ./servers.json, maxEntries: ${count} } }\n`,
  )
  const port = await freePort()
  const from = performance.now()
  const args = ['registry', '--config', config, '--address', `127.0.0.1:${port}`, '--internal-address', '127.0.0.1:0']
  const running = await startProcess([LAUNCHER, ...args, '--log-level', 'warn'], port, LIST).catch((error: unknown) => {
    rmSync(folder, { recursive: true, force: true })
    throw error
  })
  try {
    const { pid, url: list } = running
    const startSeconds = (performance.now() - from) / 1000
    const startCpu = cpuOf(pid) / 1e9
    const first = memoryOf(pid) / MIB
    const walkedFrom = performance.now()
    const walked = await walk(list)
    if (walked.entries !== count) throw new Error(`${walked.entries} entries of ${count} are listed`)
    const walkSeconds = (performance.now() - walkedFrom) / 1000
    const rows: string[][] = []
    for (const [what, query] of [
      ['the first page', 'limit=30'],
      ['a page in the middle', `limit=30&cursor=${encodeURIComponent(walked.middle)}`],
      ['a search for what all have', 'limit=30&search=server'],
      ['a search for what one has', `limit=30&search=server-${String(count - 1).padStart(6, '0')}`],
      ['a search without results', 'limit=30&search=nothing-of-that-name'],
      ['a search for what is made of usual parts', 'limit=30&search=usual%20lengths'],
    ] as const) {
      const took: number[] = []
      for (let time = 0; time < WARM_TIMES; time++) await get(`${list}?${query}`)
      const cpuBefore = cpuOf(pid)
      for (let time = 0; time < TIMES; time++) {
        const askedAt = performance.now()
        await get(`${list}?${query}`)
        took.push(performance.now() - askedAt)
      }
      const cpuMs = (cpuOf(pid) - cpuBefore) / 1e6 / TIMES
      rows.push([what, cpuMs.toFixed(2), quantile(took, 0.5).toFixed(1), quantile(took, 0.99).toFixed(1)])
    }
    await pause(restMs)
    return [
      `**A registry with ${count} entries** (a file of ${(servers.length / MIB).toFixed(0)} MiB)`,
      table(['', 'CPU ms', 'p50 ms', 'p99 ms'], rows),
      `Start to listening ${startSeconds.toFixed(1)} s, ${startCpu.toFixed(1)} s of CPU; ${first.toFixed(0)} MiB then and ${(memoryOf(pid) / MIB).toFixed(0)} at rest; all ${walked.pages} pages of ${PAGE}, one after the other: ${walkSeconds.toFixed(1)} s.`,
    ].join('\n\n')
  } finally {
    await running.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}
