import { existsSync } from 'node:fs'
import { cpus } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { findCaddy, startCaddy } from './caddy.ts'
import { freePort } from '../lab/free-port.ts'
import { inspectable } from './inspector.ts'
import { measureEvents, measureIdle, measureLoad, type StreamFigures, type Subject } from './measure.ts'
import {
  forkScript,
  type Generator,
  MEASURED_TYPES,
  type Running,
  startGenerator,
  startProxyCommand,
} from './processes.ts'
import { runAccounts } from './parts/accounts.ts'
import { runAws } from './parts/aws.ts'
import { runBodies } from './parts/bodies.ts'
import { runCallers } from './parts/callers.ts'
import { runConnections } from './parts/connections.ts'
import { runLogins } from './parts/logins.ts'
import { runInspector } from './parts/inspector.ts'
import { runRules } from './parts/rules.ts'
import { runTokens } from './parts/tokens.ts'
import { runTraces } from './parts/traces.ts'
import { runWorkers } from './parts/workers.ts'
import { runYoung } from './parts/young.ts'
import { runProcessCost } from './parts/process-cost.ts'
import { SCALE_PARTS, type ScaleOptions } from './parts/scale.ts'
import { loadTable, streamTable, writeReport } from './report.ts'

const HELP = `npm run bench -- [--quick] [--only load|streams|callers|bodies|connections|logins|accounts|tokens|aws|workers|inspector|rules|traces|process|young|scale]
                 [--size BYTES] [--connections N] [--against DIRECTORY] [--caddy FILE]

Compares what a request costs through extauth, through the least that a proxy on undici can do, and through its peers,
all against the same backend, in alternating rounds. Peers take part when they are installed: npm ci --prefix bench.
--caddy names the program of Caddy; without it the first on PATH takes part in load and callers, when there is one.
--size and --connections measure load and callers in this shape only (callers: 1024 and 16 without them).
scale measures what large numbers cost: routes, reload, callers, streams, logins, registry, workers; scale/routes only that.
--against measures callers, bodies, connections, the inspector and rules in another checkout of this project as well, in the same
rounds.
A full run takes about an hour and writes the tables of docs/engineering/performance.md; --quick some minutes, and writes nothing.
`
const BARE = 'bare undici'
const MIB = 1024 * 1024
const say = (text: string): void => void process.stdout.write(`${text}\n`)

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean' },
    help: { type: 'boolean' },
    only: { type: 'string' },
    against: { type: 'string' },
    caddy: { type: 'string' },
    size: { type: 'string' },
    connections: { type: 'string' },
  },
})

const caddy = findCaddy(values.caddy)
const count = (text: string | undefined): number | undefined => {
  if (text === undefined) return undefined
  if (!/^\d{1,8}$/.test(text)) throw new Error(`${text} is no number of bytes or connections`)
  return Number(text)
}
const only = { size: count(values.size), connections: count(values.connections) }
const sizes = only.size !== undefined ? [only.size] : values.quick === true ? [1024] : [0, 1024, 16 * 1024, 256 * 1024]
const connections = only.connections !== undefined ? [only.connections] : values.quick === true ? [1, 16] : [1, 16, 64]
const rounds = values.quick === true ? 2 : 7
const roundMs = values.quick === true ? 300 : 1200
const idleStreams = values.quick === true ? 100 : 1000
const eventShape =
  values.quick === true ? { streams: 50, ms: 300, first: 100 } : { streams: 100, ms: 2000, first: 1000 }

const callers = values.quick === true ? { rounds: 2, roundMs: 300 } : { rounds: 41, roundMs: 400 }
const callersShape = { size: only.size ?? 1024, connections: only.connections ?? 16 }
const starts = values.quick === true ? { starts: 1, rounds: 2 } : { starts: 3, rounds: 14 }
const bodies = values.quick === true ? { rounds: 2, bytes: 8 * MIB } : { rounds: 14, bytes: 64 * MIB }
const held =
  values.quick === true
    ? { rounds: 1, loadMs: 500, streams: 200, kept: 500 }
    : { rounds: 3, loadMs: 3000, streams: 4000, kept: 9800 }
const logins = values.quick === true ? { rounds: 2, roundMs: 300 } : { rounds: 41, roundMs: 400 }
const young = values.quick === true ? { rounds: 2, roundMs: 300 } : { rounds: 21, roundMs: 400 }
const scale: ScaleOptions =
  values.quick === true
    ? {
        routes: [1, 1000],
        callers: [100, 2000],
        rounds: 3,
        roundMs: 300,
        streams: 1000,
        loginSeconds: 5,
        entries: 5000,
        workersMs: 2000,
        restMs: 3000,
      }
    : {
        routes: [1, 100, 1000, 10_000],
        callers: [100, 10_000, 100_000],
        rounds: 15,
        roundMs: 1500,
        streams: 10_000,
        loginSeconds: 60,
        entries: 100_000,
        workersMs: 10_000,
        restMs: 30_000,
      }
const processes = values.quick === true ? { rounds: 1, loadMs: 500 } : { rounds: 5, loadMs: 3000 }

/** Each way to the backend: its name, how to start it, and the paths that are measured through it. */
interface Way {
  readonly name: string
  start(backend: string, env?: NodeJS.ProcessEnv): Promise<Running>
  readonly paths: readonly { readonly name: string; readonly path: string }[]
}

const forked = (name: string, script: string): Way => ({
  name,
  start: (backend, env) => forkScript(script, [backend], env),
  paths: [{ name, path: '/mcp' }],
})
const peers: readonly Way[] = existsSync(fileURLToPath(new URL('node_modules/http-proxy-3', import.meta.url)))
  ? [forked('http-proxy-3', 'proxies/http-proxy-3.ts'), forked('@fastify/http-proxy', 'proxies/fastify.ts')]
  : []
/** For the load only: memory of streams is measured with what Node collects. */
const caddyWay: readonly Way[] =
  caddy === undefined
    ? []
    : [{ name: 'Caddy', start: (backend) => startCaddy(caddy, backend), paths: [{ name: 'Caddy', path: '/mcp' }] }]
const extauth = (logLevel: string, suffix: string, types: readonly string[]): Way => ({
  name: `extauth${suffix}`,
  start: (backend, env) => startProxyCommand({ backend, logLevel, env }),
  paths: types.map((type) => ({ name: `extauth ${type}${suffix}`, path: `/${type}` })),
})
const ways: readonly Way[] = [
  forked(BARE, 'proxies/bare.ts'),
  ...peers,
  extauth('info', '', MEASURED_TYPES),
  extauth('warn', ', no request log', ['bearerToken']),
]

const runLoad = async (generator: Generator, backend: string): Promise<string[]> => {
  const running: Running[] = []
  const subjects: Subject[] = [{ name: 'direct', url: `${backend}/mcp`, pid: undefined }]
  try {
    for (const way of [...ways, ...caddyWay]) {
      const one = await way.start(backend)
      running.push(one)
      for (const { name, path } of way.paths) subjects.push({ name, url: one.url + path, pid: one.pid })
    }
    // Compiled code is measured, not compiling.
    for (const { url } of subjects) await generator.ask({ kind: 'load', url, size: 1024, connections: 16, ms: 1500 })
    const tables: string[] = []
    for (const size of sizes) {
      for (const count of connections) {
        const shape = { size, connections: count, ms: roundMs }
        tables.push(loadTable(size, count, await measureLoad(generator, subjects, BARE, shape, rounds)))
        say(`\n${tables.at(-1)}`)
      }
    }
    return tables
  } finally {
    await Promise.all(running.map((one) => one.stop()))
  }
}

const runStreams = async (generator: Generator, backend: string): Promise<string> => {
  const memory = new Map<string, number>()
  const delays: [Subject, Running][] = []
  try {
    for (const way of ways) {
      // A new process for each, so that no heap was grown by another.
      for (const { name, path } of way.paths) {
        const port = await freePort()
        const one = await way.start(backend, inspectable(port))
        memory.set(
          name,
          await measureIdle(generator, { pid: one.pid, url: one.url + path }, port, 'open-idle', idleStreams),
        )
        delays.push([{ name, url: one.url + path, pid: one.pid }, one])
      }
    }
    const subjects = delays.map(([subject]) => subject)
    const events = await measureEvents(generator, subjects, eventShape, values.quick === true ? 1 : 9)
    const figures = new Map<string, StreamFigures>()
    for (const [name, one] of events) figures.set(name, { ...one, bytesPerStream: memory.get(name) ?? Number.NaN })
    const text = streamTable(idleStreams, BARE, figures)
    say(`\n${text}`)
    return text
  } finally {
    await Promise.all(delays.map(([, one]) => one.stop()))
  }
}

const main = async (): Promise<void> => {
  const backend = await forkScript('backend.ts')
  const generator = await startGenerator()
  try {
    const machine = `${new Date().toISOString().slice(0, 10)}, Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model.trim() ?? 'unknown CPU'}; ${rounds} rounds; lower quartiles for CPU and streams, medians for the rest.`
    say(machine)
    if (peers.length === 0) say('The peers are not installed (npm ci --prefix bench); they are left out.')
    if (caddy === undefined) say('Caddy is not there (--caddy FILE, or on PATH); it is left out.')
    const parts = [machine]
    const wants = (part: string): boolean =>
      values.only === undefined || values.only === part || part.startsWith(`${values.only}/`)
    const add = (text: string): void => {
      parts.push(text)
      say(`\n${text}`)
    }
    if (wants('callers')) {
      const options = { ...callers, ...starts, ...callersShape, against: values.against, caddy }
      add(await runCallers(generator, backend.url, options))
    }
    const { against } = values
    if (wants('bodies')) add(await runBodies(generator, backend.url, { ...bodies, against }))
    if (wants('connections')) add(await runConnections(generator, backend.url, { ...held, against }))
    if (wants('logins')) add(await runLogins(generator, backend.url, logins))
    if (wants('accounts')) add(await runAccounts(generator, backend.url, logins))
    if (wants('tokens')) add(await runTokens(generator, backend.url, logins))
    if (wants('aws')) add(await runAws(generator, backend.url, logins))
    if (wants('workers')) add(await runWorkers(generator, backend.url, callers))
    if (wants('inspector')) add(await runInspector(generator, backend.url, { ...callers, against: values.against }))
    if (wants('rules')) add(await runRules(generator, backend.url, { ...callers, against }))
    if (wants('traces')) add(await runTraces(generator, backend.url, callers))
    if (wants('young')) add(await runYoung(generator, backend.url, young))
    if (wants('process')) add(await runProcessCost(generator, backend.url, processes))
    for (const [part, run] of Object.entries(SCALE_PARTS))
      if (wants(`scale/${part}`)) add(await run(generator, backend.url, scale))
    if (wants('load')) parts.push(...(await runLoad(generator, backend.url)))
    if (wants('streams')) parts.push(await runStreams(generator, backend.url))
    if (values.quick !== true && [values.only, only.size, only.connections].every((one) => one === undefined)) {
      writeReport(fileURLToPath(new URL('../docs/engineering/performance.md', import.meta.url)), parts.join('\n\n'))
    }
  } finally {
    await generator.stop()
    await backend.stop()
  }
}

if (values.help === true) say(HELP)
else await main()
