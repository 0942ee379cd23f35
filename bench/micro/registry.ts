/**
 * The registry's list of 30 entries against a bare Fastify JSON route that gives the same bytes, in rounds that alternate
 * between server processes. Budgets: at least 0.7 of the bare route's requests per second; a search costs at most twice
 * a plain page, and a request that is logged 1.3 times one that is not (CPU).
 *
 *   node bench/micro/registry.ts [seconds per round, default 2] [rounds, default 5]
 */
import { fork, type ChildProcess } from 'node:child_process'
import { openSync } from 'node:fs'
import { connect } from 'node:net'
import Fastify from 'fastify'
import { createAuthenticator, protectedResourceMetadata } from '../../src/authenticate/index.ts'
import { createClientOf } from '../../src/listen/index.ts'
import { type ClientRequest, Secret, type Log, type Metrics } from '../../src/core/index.ts'
import { openLog } from '../../src/report/logging.ts'
import { openMetrics } from '../../src/report/metrics.ts'
import { startLabIdentityProvider } from '../../lab/index.ts'
import { createOutbound } from '../../src/net/index.ts'
import { startRegistry, type AccessPolicy } from '../../src/registry/index.ts'
import { renderPage } from '../../src/registry/listing/page.ts'
import { validateItems } from '../../src/registry/parse.ts'
import { buildSnapshot } from '../../src/registry/listing/snapshot.ts'
import { registryEntry } from '../registry-entries.ts'
import { authSection } from '../../src/resources/index.ts'

const ENTRIES = 10_000
const CONNECTIONS = 16
const BUDGET = 0.7
const SEARCH_BUDGET = 2
const LOG_BUDGET = 1.3
const PATH = '/registry/default/v0.1/servers'
/** Search terms: common, rare, two letters, absent, and made of common parts. */
const SEARCHES = ['server', 'server-009999', 'zz', 'nothing', 'the usual lengths'].map(
  (text) => `${PATH}?search=${encodeURIComponent(text)}`,
)

const VARIANTS = [
  'bare route, object',
  'bare route, text',
  'registry, anonymous',
  'registry, oauth',
  'registry, search',
  'registry, logged',
  'registry, oauth, logged',
] as const
type Variant = (typeof VARIANTS)[number]

interface Started {
  readonly url: string
  /** For the Authorization header; empty for none. */
  readonly token: string
}

const nothing = { add: () => {}, set: () => {}, observe: () => {} }
const METRICS: Metrics = {
  counter: () => ({ with: () => nothing }),
  gauge: () => ({ with: () => nothing }),
  histogram: () => ({ with: () => nothing }),
}
const LOG: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
const CLOCK = { now: () => Date.now() }

async function oauthAccess(): Promise<{ access: AccessPolicy; token: string }> {
  const identity = await startLabIdentityProvider({
    port: 0,
    clients: [{ id: 'x', secret: new Secret('x'), may: [] }],
    clock: CLOCK,
  })
  const providers = [{ name: 'lab', issuerUrl: identity.url, audience: 'registry' }]
  const auth = authSection().parse({ mode: 'oauth', oauth: { resourceUrl: 'http://localhost', providers } })
  const outbound = (
    options: Parameters<typeof createOutbound>[0] | Omit<Parameters<typeof createOutbound>[0], 'clock'>,
  ) => createOutbound({ ...options, clock: CLOCK })
  const tokens = createAuthenticator(auth, { clock: CLOCK, log: LOG, metrics: METRICS, outbound })
  await tokens.start()
  const token = await identity.mint({ sub: 'alice', aud: ['registry'], ttlSeconds: 3600 })
  const { resource } = protectedResourceMetadata({ resourceUrl: 'http://localhost', auth })
  const rules = { realm: 'r', resourceMetadata: resource, isPublicPath: () => false }
  const clientOf = createClientOf([])
  const access = {
    mode: 'oauth',
    tokens,
    peerOf: (request: ClientRequest) => clientOf(request).address,
    ...rules,
  } as const
  return { access, token }
}

async function serve(variant: Variant): Promise<Started> {
  const items = Array.from({ length: ENTRIES }, (_, index) => registryEntry(index))
  const snapshot = await buildSnapshot(await validateItems(items, 'bench', 0))
  if (variant.startsWith('bare')) {
    const text = renderPage(snapshot, { limit: 30 })
    const object: unknown = JSON.parse(text)
    const app = Fastify({ logger: false })
    if (variant === 'bare route, object') app.get(PATH, () => object)
    else app.get(PATH, (_request, reply) => reply.header('content-type', 'application/json; charset=utf-8').send(text))
    return { url: await app.listen({ host: '127.0.0.1', port: 0 }), token: '' }
  }
  const { access, token } = variant.includes('oauth')
    ? await oauthAccess()
    : { access: { mode: 'anonymous' } as const, token: '' }
  // As `extauth registry` has it, but for where the lines go.
  const logged = variant.endsWith('logged')
  const log = logged ? openLog({ level: 'info', fd: openSync('/dev/null', 'w') }) : LOG
  const server = await startRegistry({
    address: '127.0.0.1:0',
    registries: new Map([['default', { state: () => ({ snapshot, problem: undefined, loadedAtMs: 0 }) }]]),
    access,
    documentsFor: () => new Map(),
    version: '0',
    log,
    metrics: logged ? openMetrics() : METRICS,
  })
  return { url: server.url, token }
}

/** One connection that sends the next request as soon as an answer is complete; no parser, so that the server is what is measured. */
function drive(started: Started, paths: readonly string[], until: number): Promise<number> {
  const authorization = started.token === '' ? '' : `authorization: Bearer ${started.token}\r\n`
  const requests = paths.map((path) => `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n${authorization}\r\n`)
  return new Promise((resolve, reject) => {
    let [answers, missing] = [0, 0]
    const next = (): void => void socket.write(requests[answers % requests.length] ?? '')
    const socket = connect(Number(new URL(started.url).port), '127.0.0.1', next)
    socket.on('error', reject)
    socket.on('data', (chunk: Buffer) => {
      if (missing > 0) {
        missing -= chunk.length
      } else {
        const end = chunk.indexOf('\r\n\r\n')
        const head = chunk.toString('latin1', 0, end)
        if (!head.startsWith('HTTP/1.1 200')) return reject(new Error(head.split('\r\n')[0]))
        missing = Number(/content-length: (\d+)/i.exec(head)?.[1]) - (chunk.length - end - 4)
      }
      if (missing > 0) return
      answers += 1
      if (performance.now() < until) next()
      else {
        socket.destroy()
        resolve(answers)
      }
    })
  })
}

interface Child {
  readonly process: ChildProcess
  readonly started: Started
}

const ask = <T>(child: ChildProcess, message: string): Promise<T> =>
  new Promise((resolve) => {
    child.once('message', (answer) => resolve(answer as T))
    child.send(message)
  })

async function measure(
  variant: Variant,
  { process: child, started }: Child,
  seconds: number,
): Promise<{ perSecond: number; cpuMicros: number }> {
  const before = await ask<number>(child, 'cpu')
  const begin = performance.now()
  const until = begin + seconds * 1000
  const counts = await Promise.all(
    Array.from({ length: CONNECTIONS }, () =>
      drive(started, variant === 'registry, search' ? SEARCHES : [PATH], until),
    ),
  )
  const elapsed = (performance.now() - begin) / 1000
  const total = counts.reduce((sum, count) => sum + count, 0)
  return { perSecond: total / elapsed, cpuMicros: ((await ask<number>(child, 'cpu')) - before) / total }
}

const kept = (isKept: boolean): string => (isKept ? 'kept' : 'MISSED')

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN

async function main(): Promise<void> {
  const seconds = Number(process.argv[2] ?? 2)
  const rounds = Number(process.argv[3] ?? 5)
  const children = new Map<Variant, Child>()
  for (const variant of VARIANTS) {
    const child = fork(import.meta.filename, ['serve', variant])
    const started = await new Promise<Started>((resolve) =>
      child.once('message', (message) => resolve(message as Started)),
    )
    children.set(variant, { process: child, started })
  }
  const results = new Map<Variant, { perSecond: number; cpuMicros: number }[]>(VARIANTS.map((name) => [name, []]))
  for (const [variant, child] of children) await measure(variant, child, 1)
  for (let round = 0; round < rounds; round++)
    for (const [variant, child] of children) results.get(variant)?.push(await measure(variant, child, seconds))
  for (const { process: child } of children.values()) child.disconnect()

  const of = (variant: Variant) => {
    const rounds = results.get(variant) ?? []
    return { rate: median(rounds.map((round) => round.perSecond)), cpu: median(rounds.map((round) => round.cpuMicros)) }
  }
  const bare = of('bare route, object')
  const lines = VARIANTS.map((variant) => {
    const { rate, cpu } = of(variant)
    return `${variant.padEnd(24)} ${rate.toFixed(0).padStart(7)} requests/s  ${cpu.toFixed(1).padStart(6)} µs CPU  ratio ${(rate / bare.rate).toFixed(2)}`
  })
  const ratio = Math.min(of('registry, anonymous').rate, of('registry, oauth').rate) / bare.rate
  lines.push(`list of 30 of ${ENTRIES} entries; budget: at least ${BUDGET} of the bare route: ${kept(ratio >= BUDGET)}`)
  const search = of('registry, search').cpu / of('registry, anonymous').cpu
  lines.push(
    `search against a plain page: ${search.toFixed(2)}; budget: ${SEARCH_BUDGET}: ${kept(search <= SEARCH_BUDGET)}`,
  )
  const logged = Math.max(
    of('registry, logged').cpu / of('registry, anonymous').cpu,
    of('registry, oauth, logged').cpu / of('registry, oauth').cpu,
  )
  lines.push(`logged against not: ${logged.toFixed(2)}; budget: ${LOG_BUDGET}: ${kept(logged <= LOG_BUDGET)}`)
  process.stdout.write(`${lines.join('\n')}\n`)
  process.exitCode = ratio >= BUDGET && search <= SEARCH_BUDGET && logged <= LOG_BUDGET ? 0 : 1
}

if (process.argv[2] === 'serve') {
  const started = await serve(process.argv[3] as Variant)
  process.on('message', () => {
    const { user, system } = process.cpuUsage()
    process.send?.(user + system)
  })
  process.once('disconnect', () => process.exit(0))
  process.send?.(started)
} else {
  await main()
}
