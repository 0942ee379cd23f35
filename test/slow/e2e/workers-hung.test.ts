import { createServer } from 'node:http'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createSockets } from '../../support/sockets.ts'
import { authConfig, proxyConfig } from '../../support/e2e/run.ts'
import { alone, runWorkersProcess } from '../../support/e2e/workers.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

async function start() {
  const backend = createServer((request, response) => {
    request.resume().on('end', () => response.end('{}'))
  })
  const target = await sockets.listen(backend)
  return runWorkersProcess(sockets, {
    'none.json': authConfig('none', { type: 'unauthenticated' }),
    'proxy.json': proxyConfig({
      auth: { mode: 'anonymous' },
      routes: [{ name: 'a', path: '/a', target: `http://${target}/mcp`, externalAuthConfigRef: { name: 'none' } }],
    }),
  })
}

describe('a worker that hangs', () => {
  it('is killed and replaced, and a connection that it was offered goes to another one', async () => {
    const proxy = await start()
    const call = () => alone(`${proxy.url}/a`, { body: { jsonrpc: '2.0', id: 1, method: 'ping' } })
    for (let round = 0; round < 4; round += 1) expect((await call()).status).toBe(200)
    const [victim = 0] = await proxy.pids()
    process.kill(victim, 'SIGSTOP')
    // The hung worker gets one of these.
    const answers = await Promise.all(Array.from({ length: 8 }, call))
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 8 }, () => 200))
    await vi.waitFor(async () => expect((await proxy.admin('/readiness')).json).toEqual({ status: 'ready' }), 120_000)
    expect(await proxy.pids()).not.toContain(victim)
    expect(await proxy.metric('extauth_worker_ends_total{reason="hung"}')).toBe(1)
    expect(await proxy.metric('extauth_worker_ends_total{reason="crashed"}')).toBe(0)
    expect(proxy.running.stderr()).toContain('worker is unresponsive')
    for (let round = 0; round < 4; round += 1) expect((await call()).status).toBe(200)
  }, 240_000)
})
