import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createSockets } from '../../support/sockets.ts'
import { CALL, MCP } from '../../support/e2e/credentials.ts'
import { extauth, type Running } from '../../support/e2e/process.ts'
import { authConfig, configFolder, proxyConfig } from '../../support/e2e/run.ts'
import { alone } from '../../support/e2e/workers.ts'

const MIB = 1024 * 1024
const LIMIT_BYTES = 320 * MIB
const SLOW = 300
const ENDLESS = Buffer.alloc(256 * 1024, 'x')

const sockets = createSockets()
let running: Running | undefined
afterEach(async () => {
  running?.process.kill('SIGKILL')
  await running?.ended
  await sockets.closeAll()
})

/** A started proxy before a backend whose answers never end at `/endless`, and are short elsewhere. */
async function start() {
  const backend = await sockets.http((request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    if (request.url !== '/endless') {
      response.end('{}')
      return
    }
    const more = (): void => {
      while (!response.destroyed && response.write(ENDLESS));
    }
    response.on('drain', more)
    more()
  })
  const route = (path: string) => ({
    name: path.slice(1),
    path,
    target: `${backend}${path}`,
    externalAuthConfigRef: { name: 'open' },
  })
  const { directory, remove } = await configFolder({
    'open.json': authConfig('open', { type: 'unauthenticated' }),
    'proxy.json': proxyConfig({ auth: { mode: 'anonymous' }, routes: [route('/endless'), route('/short')] }),
  })
  sockets.closing({ close: remove })
  const free = ['--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0']
  running = extauth(['proxy', '--config', directory, ...free], { env: { EXTAUTH_MEMORY_LIMIT: String(LIMIT_BYTES) } })
  const line = await running.line('listening')
  return { ...(line as { url: string; admin: string; unreadAnswersBytes: number }), running }
}

/** Asks for what never ends, from an address of this machine, and reads nothing of it. */
function slowReader(url: string, localAddress: string): Socket {
  const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', localAddress })
  sockets.closing({ close: () => socket.destroy() })
  socket.on('error', () => {}).write('GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n')
  return socket.pause()
}

/** The most that a process ever had resident, in bytes; Linux says so. */
const mostResident = (pid: number | undefined): number =>
  Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024

describe('300 clients that do not read', () => {
  it('hold bounded memory, are aborted before clients that hold less, and stop no other client', async () => {
    const { url, admin, unreadAnswersBytes, running } = await start()
    expect(unreadAnswersBytes).toBe(8 * MIB)
    const metric = async (line: string): Promise<number> => {
      const text = await (await fetch(`${admin}/metrics`)).text()
      const found = text.split('\n').find((candidate) => candidate.startsWith(`${line} `))
      return Number(found?.slice(line.length + 1) ?? 0)
    }
    // Another slow client that holds little.
    const other = slowReader(url, '127.0.0.2')
    for (let count = 0; count < SLOW; count++) slowReader(url, '127.0.0.3')
    const statuses: number[] = []
    const cut = () => metric('extauth_connections_cut_total{reason="crowded"}')
    await vi.waitFor(
      async () => {
        statuses.push((await alone(`${url}/short`, { headers: MCP, body: CALL })).status)
        expect(await cut()).toBeGreaterThan(0)
      },
      { timeout: 30_000, interval: 20 },
    )
    await vi.waitFor(
      async () => {
        const held = await metric('extauth_unread_answer_bytes')
        expect(held).toBeLessThanOrEqual(unreadAnswersBytes)
        expect(held).toBeGreaterThan(MIB)
      },
      { timeout: 10_000 },
    )
    for (let more = 0; more < 50; more++)
      statuses.push((await alone(`${url}/short`, { headers: MCP, body: CALL })).status)
    expect(new Set(statuses)).toEqual(new Set([200]))
    const lines = running.stderr().split('\n')
    expect(lines.filter((line) => line.includes('unread responses exceed the memory limit'))).toHaveLength(1)
    expect(mostResident(running.process.pid)).toBeLessThan(LIMIT_BYTES)
    expect(await cut()).toBeLessThan(SLOW)
    // More than was on its way to it: its answer goes on.
    other.resume()
    await vi.waitFor(() => expect(other.bytesRead).toBeGreaterThan(32 * MIB), 20_000)
  }, 90_000)
})
