import { Agent, request } from 'undici'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { LAB_AUDIENCE, startLabIdentityProvider } from '../../../lab/index.ts'
import { createSockets } from '../../support/sockets.ts'
import { extauth, type Running } from '../../support/e2e/process.ts'
import { authConfig, configFolder, proxyConfig } from '../../support/e2e/run.ts'

/** Garbage of compilation and of the first callers is excluded. */
const BEFORE = 3000
const REQUESTS = 2500
/** Bytes of one request that may outlive it. An eighth of what it allocates: caches and what is in flight at a collection. */
const KEPT_BYTES = 2560

const clock = { now: () => Date.now() }
const sockets = createSockets()
const agent = new Agent({ connections: 16, pipelining: 1 })
/** Collections of both processes, with a fixed young generation and each collection traced. */
const running: Running[] = []
let callers: readonly string[]
let directory: string

/** Starts a proxy whose young generation has two halves of at most so many MiB, undefined: as the program sets it. */
async function start(
  halfMiB?: number,
): Promise<{ readonly one: Running; readonly url: string; readonly admin: string }> {
  const size = halfMiB === undefined ? '' : `--max-semi-space-size=${halfMiB}`
  const one = extauth(['proxy', '--config', directory, '--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0'], {
    through: ['bash', '-c', `exec "$0" --trace-gc ${size} "$@"`],
  })
  running.push(one)
  return { one, ...((await one.line('listening')) as { url: string; admin: string }) }
}

beforeAll(async () => {
  const identity = sockets.closing(await startLabIdentityProvider({ port: 0, clock, clients: [] }))
  const subjects = Array.from({ length: 50 }, (_, number) => `caller-${number}`)
  callers = await Promise.all(subjects.map((sub) => identity.mint({ sub, ttlSeconds: 3600 })))
  const backend = await sockets.http((incoming, response) => {
    incoming.resume().on('end', () => response.setHeader('content-type', 'application/json').end('{}'))
  })
  const providers = [{ name: 'lab', issuerUrl: identity.url, audience: LAB_AUDIENCE }]
  const oauth = { mode: 'oauth', oauth: { resourceUrl: 'http://127.0.0.1/', providers } }
  const folder = await configFolder({
    'static.json': authConfig('static', {
      type: 'bearerToken',
      bearerToken: { tokenSecretRef: { name: 'proxy', key: 'token' } },
    }),
    'secrets/proxy/token': 'a-token-of-the-backend',
    'proxy.json': proxyConfig({
      secretsDirectory: 'secrets',
      routes: Object.entries({ anonymous: { mode: 'anonymous' }, verified: oauth }).map(([name, auth]) => ({
        name,
        path: `/${name}`,
        target: `${backend}/mcp`,
        externalAuthConfigRef: { name: 'static' },
        auth,
      })),
    }),
  })
  directory = folder.directory
  sockets.closing({ close: folder.remove })
})
afterAll(async () => {
  for (const { process, ended } of running) {
    process.kill('SIGKILL')
    await ended
  }
  await agent.close()
  await sockets.closeAll()
})

async function load(url: string, count: number): Promise<void> {
  let [left, turn] = [count, 0]
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'x', arguments: {} } })
  const one = async (): Promise<void> => {
    while (left-- > 0) {
      const authorization = `Bearer ${callers[turn++ % callers.length]}`
      const headers = { 'content-type': 'application/json', authorization }
      const response = await request(url, { method: 'POST', headers, body, dispatcher: agent })
      await response.body.dump()
      if (response.statusCode !== 200) throw new Error(`${url}: ${response.statusCode}`)
    }
  }
  await Promise.all(Array.from({ length: 16 }, one))
}

/** A collection of the young generation as V8 traces it: the heap before and after, in MiB. */
const SCAVENGE = /: Scavenge ([\d.]+) \([\d.]+\) -> ([\d.]+) /
const COLLECTED = / -> ([\d.]+) /

/** Bytes that a request leaves behind: what the heap is larger after collections of the young than it was after those before. */
async function keptOf(one: Running, url: string): Promise<number> {
  const from = one.stdout().length
  await load(url, REQUESTS)
  let [kept, scavenges, before] = [0, 0, Number.NaN]
  for (const line of one.stdout().slice(from).split('\n')) {
    const after = Number((SCAVENGE.exec(line)?.[2] ?? COLLECTED.exec(line)?.[1]) || Number.NaN)
    if (Number.isNaN(after)) continue
    if (SCAVENGE.test(line) && !Number.isNaN(before)) [kept, scavenges] = [kept + after - before, scavenges + 1]
    before = after
  }
  expect(scavenges).toBeGreaterThan(5)
  return (kept * 1024 * 1024) / REQUESTS
}

it.each(['anonymous', 'verified'])(
  'what a request of %s callers allocates is gone with it',
  async (route) => {
    const { one, url } = await start(4)
    await load(`${url}/${route}`, BEFORE)
    expect(await keptOf(one, `${url}/${route}`)).toBeLessThan(KEPT_BYTES)
  },
  180_000,
)

it('the young generation is bounded without an option of Node', async () => {
  const { admin, url } = await start()
  for (let round = 0; round < 8; round++) await load(`${url}/verified`, BEFORE)
  const metrics = await (await fetch(`${admin}/metrics`)).text()
  const young = /^nodejs_heap_space_size_total_bytes\{space="new"\} (\d+)/m.exec(metrics)?.[1]
  expect(Number(young)).toBeLessThanOrEqual(32 * 1024 * 1024)
}, 180_000)
