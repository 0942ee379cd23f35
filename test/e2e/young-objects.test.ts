import { Agent, request } from 'undici'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { LAB_AUDIENCE, startLabIdentityProvider } from '../../lab/index.ts'
import { createSockets } from '../support/sockets.ts'
import { extauth, type Running } from './process.ts'
import { authConfig, configFolder, proxyConfig } from './run.ts'

/** What compiling and the first callers leave behind is nobody's request. */
const BEFORE = 3000
const REQUESTS = 3000
/** Requests between two looks. */
const STRETCH = 500
const MOST_STRETCHES = 60
/** Bytes of one request that may outlive it. A tenth of what it allocates: caches and what is in flight at a collection. */
const KEPT_BYTES = 2048

const clock = { now: () => Date.now() }
const sockets = createSockets()
const agent = new Agent({ connections: 16, pipelining: 1 })
let running: Running
let callers: readonly string[]
let at: { url: string; admin: string }

beforeAll(async () => {
  const identity = sockets.closing(await startLabIdentityProvider({ port: 0, clock, clients: [] }))
  const subjects = Array.from({ length: 50 }, (_, number) => `caller-${number}`)
  callers = await Promise.all(subjects.map((sub) => identity.mint({ sub, ttlSeconds: 3600 })))
  const backend = await sockets.http((incoming, response) => {
    incoming.resume().on('end', () => response.setHeader('content-type', 'application/json').end('{}'))
  })
  const providers = [{ name: 'lab', issuerUrl: identity.url, audience: LAB_AUDIENCE }]
  const oauth = { mode: 'oauth', oauth: { resourceUrl: 'http://127.0.0.1/', providers } }
  const { directory, remove } = await configFolder({
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
  sockets.closing({ close: remove })
  running = extauth(['proxy', '--config', directory, '--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0'], {
    // Small and of one size, so that the young are collected often and what stays is seen at once.
    env: { NODE_OPTIONS: '--max-semi-space-size=2' },
  })
  at = (await running.line('listening')) as { url: string; admin: string }
})
afterAll(async () => {
  running.process.kill('SIGKILL')
  await running.ended
  await agent.close()
  await sockets.closeAll()
})

/** Bytes of what outlived two collections of the young, and the number of collections of the rest. */
async function old(): Promise<{ bytes: number; majors: number }> {
  const response = await request(new URL('/metrics', at.admin), { dispatcher: agent })
  const text = await response.body.text()
  const of = (pattern: RegExp): number => Number(pattern.exec(text)?.[1])
  return {
    bytes: of(/^nodejs_heap_space_size_used_bytes\{space="old"\} (\S+)$/m),
    majors: of(/^nodejs_gc_duration_seconds_count\{kind="major"\} (\S+)$/m),
  }
}

async function load(route: string, count: number): Promise<void> {
  let [left, turn] = [count, 0]
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'x', arguments: {} } })
  const one = async (): Promise<void> => {
    while (left-- > 0) {
      const authorization = `Bearer ${callers[turn++ % callers.length]}`
      const headers = { 'content-type': 'application/json', authorization }
      const response = await request(new URL(route, at.url), { method: 'POST', headers, body, dispatcher: agent })
      await response.body.dump()
      if (response.statusCode !== 200) throw new Error(`${route}: ${response.statusCode}`)
    }
  }
  await Promise.all(Array.from({ length: 16 }, one))
}

/** Bytes that a request leaves behind, of stretches in which not everything was collected. */
async function keptOf(route: string): Promise<number> {
  let [kept, requests, before] = [0, 0, await old()]
  for (let time = 0; time < MOST_STRETCHES && requests < REQUESTS; time++) {
    await load(route, STRETCH)
    const after = await old()
    if (after.majors === before.majors) [kept, requests] = [kept + after.bytes - before.bytes, requests + STRETCH]
    before = after
  }
  expect(requests).toBe(REQUESTS)
  return kept / requests
}

it.each(['anonymous', 'verified'])(
  'what a request of %s callers allocates is gone with it',
  async (route) => {
    await load(`/${route}`, BEFORE)
    expect(await keptOf(`/${route}`)).toBeLessThan(KEPT_BYTES)
  },
  180_000,
)
