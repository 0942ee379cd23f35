import { connect, type Socket } from 'node:net'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createSockets } from '../../support/sockets.ts'
import { CALL, MCP } from '../../support/e2e/credentials.ts'
import { authConfig, proxyConfig } from '../../support/e2e/run.ts'
import { alone, runWorkersProcess } from '../../support/e2e/workers.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

/** Two workers before a backend that answers at once. */
async function openWorld() {
  const backend = await sockets.http((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"jsonrpc":"2.0","id":1,"result":{}}')
  })
  const route = { name: 'open', path: '/open', target: backend, externalAuthConfigRef: { name: 'open' } }
  return runWorkersProcess(sockets, {
    'open.json': authConfig('open', { type: 'unauthenticated' }),
    'proxy.json': proxyConfig({ auth: { mode: 'anonymous' }, routes: [route] }),
  })
}

describe('extauth proxy --workers 2 whose workers are all killed at once', () => {
  it('lets connections wait for the next worker: every client is served', async () => {
    const proxy = await openWorld()
    const call = () => alone(`${proxy.url}/open`, { headers: MCP, body: CALL })
    expect((await call()).status).toBe(200)
    const victims = await proxy.pids()
    for (const pid of victims) process.kill(pid, 'SIGKILL')
    // Some connect at once, some while there is no worker.
    const early = Array.from({ length: 20 }, call)
    await vi.waitFor(async () => expect(await proxy.metric('extauth_workers')).toBe(0), 10_000)
    const late = Array.from({ length: 20 }, call)
    const answers = await Promise.all([...early, ...late])
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    const pids = await proxy.pids()
    expect(pids.filter((pid) => victims.includes(pid))).toEqual([])
    expect(await proxy.metric('extauth_worker_ends_total{reason="crashed"}')).toBe(2)
  }, 120_000)

  it('serves who sent a request and left its side open while there was none, and forgets who has gone', async () => {
    const proxy = await openWorld()
    for (const pid of await proxy.pids()) process.kill(pid, 'SIGKILL')
    await vi.waitFor(async () => expect(await proxy.metric('extauth_workers')).toBe(0), 10_000)
    const port = Number(new URL(proxy.url).port)
    const gone: Socket[] = Array.from({ length: 5 }, () => connect(port, '127.0.0.1'))
    await Promise.all(gone.map((socket) => new Promise((resolve) => socket.once('connect', resolve))))
    for (const socket of gone) socket.resetAndDestroy()
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => alone(`${proxy.url}/open`, { headers: MCP, body: CALL })),
    )
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
    proxy.running.process.kill('SIGTERM')
    expect(await proxy.running.ended).toBe(0)
  }, 120_000)
})
