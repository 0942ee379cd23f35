import { freePort } from '../../lab/free-port.ts'
import { listenOnLoopback } from '../../lab/listen.ts'
import { TLS } from '../../test/support/tls.ts'
import { startIssuer } from '../callers.ts'
import { figuresOf, loadRounds, type Subject } from '../measure.ts'
import { type Generator, memoryOf, type Running, startProxyCommand } from '../processes.ts'
import { type Amounts, scaleTable } from '../report.ts'
import { runIdleStreams } from '../scale/idle-streams.ts'
import { runLoginRate } from '../scale/login-rate.ts'
import { runRegistrySize } from '../scale/registry-size.ts'
import { runWorkersMemory } from '../scale/workers-memory.ts'

export interface ScaleOptions {
  readonly routes: readonly number[]
  readonly callers: readonly number[]
  readonly rounds: number
  readonly roundMs: number
  readonly streams: number
  /** For how long logins come. */
  readonly loginSeconds: number
  readonly entries: number
  /** Load on workers. */
  readonly workersMs: number
  /** Pause after the load before memory is read again. */
  readonly restMs: number
}

const SHAPE = { size: 1024, connections: 16 }
const MIB = 1024 * 1024
const WARM_MS = 2500
const LIFE_SECONDS = 6 * 3600

/** A subject for each amount, its requests prepared, and how much there is of it. */
interface Amount {
  readonly count: number
  readonly subject: Subject & { readonly pid: number }
}

/** Requests until each of `count` came twice, so that what is made once is made. */
async function warm(generator: Generator, { count, subject }: Amount): Promise<void> {
  let sent = 0
  for (let round = 0; round < 2 || sent < 2 * count; round++)
    sent += (await generator.ask<{ requests: number }>({ kind: 'load', ...SHAPE, ...subject, ms: WARM_MS })).requests
}

async function measured(generator: Generator, amounts: readonly Amount[], options: ScaleOptions): Promise<Amounts> {
  for (const amount of amounts) await warm(generator, amount)
  const subjects = amounts.map(({ subject }) => subject)
  const seen = await loadRounds(generator, subjects, { ...SHAPE, ms: options.roundMs }, options.rounds)
  const figures = figuresOf(seen, subjects[0]?.name ?? '')
  return amounts.map(({ count, subject }) => {
    const { cpuMicros = Number.NaN, pairedRatio = Number.NaN } = figures.get(subject.name) ?? {}
    return { count, cpuMicros, ratio: pairedRatio, memoryMiB: memoryOf(subject.pid) / MIB }
  })
}

/** Cost of a request by the number of routes, each in turn. Returns lines of a table. */
async function byRoutes(generator: Generator, backend: string, options: ScaleOptions): Promise<Amounts> {
  const running: Running[] = []
  try {
    const amounts: Amount[] = []
    for (const count of options.routes) {
      const proxy = await startProxyCommand({ backend, types: ['bearerToken'], manyRoutes: count })
      running.push(proxy)
      const name = `${count} routes`
      // Not in the order in which they were made: their memory would be.
      const paths = Array.from({ length: count }, (_, at) => `/r${(at * 7919) % count}`)
      await generator.ask({ kind: 'prepare', name, url: proxy.url, size: SHAPE.size, paths })
      amounts.push({ count, subject: { name, url: proxy.url, pid: proxy.pid, prepared: name } })
    }
    return await measured(generator, amounts, options)
  } finally {
    await Promise.all(running.map((one) => one.stop()))
  }
}

/** The same by the number of callers: verified ones alone, and ones whose tokens are exchanged. */
async function byCallers(
  generator: Generator,
  backend: string,
  options: ScaleOptions,
): Promise<{ readonly verified: Amounts; readonly exchanged: Amounts }> {
  const issuer = await startIssuer({ alg: 'ES256' })
  const endpoint = await listenOnLoopback(
    0,
    (request, response) => {
      request.resume().on('end', () => {
        const answer = { access_token: 't'.repeat(600), token_type: 'Bearer', expires_in: LIFE_SECONDS }
        response.setHeader('content-type', 'application/json')
        response.end(JSON.stringify({ ...answer, issued_token_type: 'urn:ietf:params:oauth:token-type:access_token' }))
      })
    },
    TLS.server,
  )
  const { url: issuerUrl, audience } = issuer
  const callers = `auth: { mode: oauth, oauth: { resourceUrl: "${audience}", providers: [{ name: bench, issuerUrl: "${issuerUrl}", audience: "${audience}", jwksUrl: "${issuerUrl}/jwks", allowPrivateIP: true }] } }`
  const running: Running[] = []
  const lines = async (documents: readonly string[], path: string, routes: readonly string[]): Promise<Amounts> => {
    const amounts: Amount[] = []
    for (const count of options.callers) {
      const proxy = await startProxyCommand({ backend, issuer, types: ['bearerToken'], documents, routes, ca: TLS.ca })
      running.push(proxy)
      const [name, url] = [`${path} ${count}`, `${proxy.url}${path}`]
      const authorizations = issuer.tokens(count).map((token) => `Bearer ${token}`)
      await generator.ask({ kind: 'prepare', name, url, size: SHAPE.size, authorizations })
      amounts.push({ count, subject: { name, url, pid: proxy.pid, prepared: name } })
    }
    const found = await measured(generator, amounts, options)
    await Promise.all(running.splice(0).map((one) => one.stop()))
    return found
  }
  const exchange = `apiVersion: extauth.dev/v1alpha1\nkind: MCPExternalAuthConfig\nmetadata: { name: exchange }\nspec:\n  type: tokenExchange\n  tokenExchange: { tokenUrl: "${endpoint.url}/token", audience: backend, caCertPath: ./secrets/bench/ca, clientId: us, clientSecretRef: { name: bench, key: key } }\n`
  const route = `    - { name: exchange, path: /exchange, target: "${backend}/mcp", externalAuthConfigRef: { name: exchange }, ${callers} }\n`
  try {
    return { verified: await lines([], '/verified', []), exchanged: await lines([exchange], '/exchange', [route]) }
  } finally {
    await Promise.all(running.map((one) => one.stop()))
    issuer.close()
    await endpoint.close()
  }
}

/** Asks every few milliseconds; gives the longest that an answer took, in milliseconds. */
async function longestUntil(over: AbortSignal, url: string): Promise<number> {
  let longestMs = 0
  while (!over.aborted) {
    const sentAt = performance.now()
    await (await fetch(url, { method: 'POST', body: '{}' })).arrayBuffer()
    longestMs = Math.max(longestMs, performance.now() - sentAt)
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
  return longestMs
}

/** A reload with `count` routes: how long it takes, what it costs, and how long requests wait meanwhile. */
async function reload(generator: Generator, backend: string, count: number): Promise<string> {
  const adminPort = await freePort()
  const proxy = await startProxyCommand({ backend, types: ['bearerToken'], manyRoutes: count, adminPort })
  try {
    const ask = { kind: 'load', url: `${proxy.url}/r0`, size: 1024, connections: 1 } as const
    await generator.ask({ ...ask, ms: WARM_MS })
    const times: { seconds: number; longestMs: number }[] = []
    for (let time = 0; time < 3; time++) {
      const from = performance.now()
      const over = new AbortController()
      const probing = longestUntil(over.signal, `${proxy.url}/r0`)
      const answer = await fetch(`http://127.0.0.1:${adminPort}/reload`, { method: 'POST' })
      if (!answer.ok) throw new Error(`the reload was refused: ${await answer.text()}`)
      const seconds = (performance.now() - from) / 1000
      over.abort()
      times.push({ seconds, longestMs: await probing })
    }
    const loaded = memoryOf(proxy.pid) / MIB
    const [best] = times.toSorted((one, other) => one.seconds - other.seconds)
    return `A reload of ${count} routes: ${best?.seconds.toFixed(1)} s (at most 2 on a quiet machine); the longest request meanwhile ${best?.longestMs.toFixed(0)} ms (at most 50); ${loaded.toFixed(0)} MiB after three of them.`
  } finally {
    await proxy.stop()
  }
}

/** Cost of large numbers, by their kind. Each returns its result as text. */
export const SCALE_PARTS: Readonly<
  Record<string, (generator: Generator, backend: string, options: ScaleOptions) => Promise<string>>
> = {
  routes: async (generator, backend, options) =>
    scaleTable('routes', 'routes, each in turn', await byRoutes(generator, backend, options)),
  reload: (generator, backend, { routes }) => reload(generator, backend, routes.at(-1) ?? 1),
  async callers(generator, backend, options) {
    const { verified, exchanged } = await byCallers(generator, backend, options)
    return [
      scaleTable('verified callers', '`bearerToken`, callers in turn', verified),
      scaleTable('callers whose tokens are exchanged', '`tokenExchange`, callers in turn', exchanged),
    ].join('\n\n')
  },
  streams: (generator, backend, options) => runIdleStreams(generator, backend, options),
  logins: (_generator, backend, { loginSeconds }) => runLoginRate(backend, loginSeconds),
  registry: (_generator, _backend, options) => runRegistrySize(options),
  workers: (generator, backend, options) => runWorkersMemory(generator, backend, options),
}
