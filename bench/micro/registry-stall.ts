/**
 * How long requests wait at worst while a large registry file is read again: the most that the thread of the event loop
 * worked before it came round, against what parsing the same bytes in one go takes; both in CPU time of that thread, so that
 * it does not matter what else the machine does:
 *
 *   node bench/micro/registry-stall.ts
 *
 * Budget: a quarter of it. Exit code 1 when exceeded.
 */
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { openSource } from '../../src/registry/index.ts'

const ENTRIES = 48_000
const ROUNDS = 3
const BUDGET = 0.25
const quiet = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
const nothing = { with: () => ({ add: () => {}, set: () => {}, observe: () => {}, remove: () => {} }) }
const metrics = { counter: () => nothing, gauge: () => nothing, histogram: () => nothing }
const out = (text: string): void => void process.stdout.write(`${text}\n`)

const entry = (index: number, edition: number): object => ({
  server: {
    name: `com.example.department-${index % 97}/server-${index}`,
    description: `Edition ${edition}: reads and writes what server ${index} keeps.`,
    version: `1.${index % 7}.${index % 31}`,
    title: `Server ${index}`,
    remotes: [{ type: 'streamable-http', url: `https://mcp.example.com/${index}/mcp` }],
    _meta: { 'com.example/readme': 'Lorem ipsum dolor sit amet. '.repeat(36) },
  },
})

/** CPU time of this thread in milliseconds. */
const cpuMs = (): number => {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

/** The most that the event loop worked before it came round, in milliseconds, while `work` ran. */
async function longestStall(work: () => Promise<void>): Promise<{ stallMs: number; tookMs: number }> {
  const from = performance.now()
  let last = cpuMs()
  let stallMs = 0
  let isRunning = true
  const look = (): void => {
    const now = cpuMs()
    stallMs = Math.max(stallMs, now - last)
    last = now
    if (isRunning) setImmediate(look)
  }
  setImmediate(look)
  await work()
  isRunning = false
  return { stallMs, tookMs: performance.now() - from }
}

const directory = mkdtempSync(path.join(tmpdir(), 'extauth-stall-'))
const file = path.join(directory, 'registry.json')
const write = (edition: number): void =>
  writeFileSync(file, JSON.stringify({ servers: Array.from({ length: ENTRIES }, (_, index) => entry(index, edition)) }))
try {
  write(0)
  const outbound = (): never => {
    throw new Error('nothing is fetched')
  }
  const source = await openSource('big', { file }, { clock: { now: () => Date.now() }, log: quiet, metrics, outbound })
  const bare: number[] = []
  const stalls: number[] = []
  for (let round = 1; round <= ROUNDS; round++) {
    write(round)
    const bytes = readFileSync(file)
    const from = cpuMs()
    JSON.parse(bytes.toString('utf8'))
    bare.push(cpuMs() - from)
    const { stallMs, tookMs } = await longestStall(() => source.refresh())
    stalls.push(stallMs)
    out(
      `round ${round}: ${(statSync(file).size / 2 ** 20).toFixed(0)} MiB, ${source.state().snapshot?.entries.length} entries, reload ${tookMs.toFixed(0)} ms, longest stall ${stallMs.toFixed(1)} ms, one parse ${bare.at(-1)?.toFixed(0)} ms`,
    )
  }
  await source.close()
  // The least of the rounds: whatever else the machine does only adds.
  const ratio = Math.min(...stalls) / Math.min(...bare)
  const isKept = ratio <= BUDGET
  out(`${isKept ? 'kept    ' : 'EXCEEDED'} longest stall / one parse: ${ratio.toFixed(2)} (at most ${BUDGET})`)
  if (!isKept) process.exitCode = 1
} finally {
  rmSync(directory, { recursive: true, force: true })
}
