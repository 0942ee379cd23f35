import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { rawConnect } from '../../support/raw.ts'
import { createSockets } from '../../support/sockets.ts'
import { get, startListener } from '../../support/listen/harness.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

describe('a limit of connections', () => {
  it('rejects connections above it, logs once, counts each, and accepts new ones below it', async () => {
    const listener = await startListener(sockets, (_request, response) => void response.end('ok'), {
      maxConnections: 3,
    })
    const first = [1, 2, 3].map(() => rawConnect(listener.url, get('/')))
    for (const client of first) await client.until(/ok/)
    for (let more = 0; more < 5; more++) {
      const refused = rawConnect(listener.url, get('/'))
      await refused.ended
      expect(refused.text()).toBe('')
    }
    const count = () => listener.metrics.value('extauth_connections_refused_total', 'limit')
    expect(count()).toBe(5)
    const warnings = () =>
      listener.log.lines.filter((line) => line.includes('connection limit reached, rejecting new connections'))
    expect(warnings()).toEqual([expect.stringMatching(/"level":"warn".*"reason":"limit","max":3/)])
    for (const { socket } of first) socket.destroy()
    await vi.waitFor(() => expect(listener.log.lines.join()).toContain('accepting new connections again'), 5000)
    await rawConnect(listener.url, get('/')).until(/ok/)
    expect(listener.log.lines.join()).toContain('"refused":5')
  })

  it('holds for connections that another process has accepted, and none is taken after the stop', async () => {
    const listener = await startListener(sockets, (_request, response) => void response.end('ok'), {
      maxConnections: 2,
      acceptedAt: 'http://elsewhere',
    })
    expect(listener.url).toBe('http://elsewhere')
    const taken: boolean[] = []
    const door = createServer((socket) => void taken.push(listener.take(socket)))
    sockets.closing(door.listen(0, '127.0.0.1'))
    await once(door, 'listening')
    const url = `http://127.0.0.1:${(door.address() as AddressInfo).port}`
    const first = [1, 2].map(() => rawConnect(url, get('/')))
    for (const client of first) await client.until(/ok/)
    const refused = rawConnect(url, get('/'))
    await refused.ended
    expect(refused.text()).toBe('')
    expect(listener.metrics.value('extauth_connections_refused_total', 'limit')).toBe(1)
    for (const { socket } of first) socket.destroy()
    listener.stop()
    const late = rawConnect(url, get('/'))
    await vi.waitFor(() => expect(taken).toEqual([true, true, true, false]))
    late.socket.destroy()
  })

  it('is no more than the file descriptors of the process carry', async () => {
    const door = new URL('../../../src/listen/index.ts', import.meta.url).href
    const script = `import { openListener, parseListenAddress } from ${JSON.stringify(door)}
      const say = (level) => (fields, message) => console.log(JSON.stringify({ level, message, ...fields }))
      const log = { debug: say('debug'), info: say('info'), warn: say('warn'), error: say('error') }
      const counter = { with: (reason) => ({ add: () => console.log('refused ' + reason), set: () => {} }) }
      const metrics = { counter: () => counter, gauge: () => counter, histogram: () => counter }
      const listener = await openListener({ address: parseListenAddress('127.0.0.1:0'), headerLimitBytes: 16384,
        descriptorsPerConnection: 2, clock: Date, log, metrics,
        serve: (_request, response) => response.end('ok'), refusal: () => ({ headers: {}, body: '' }) })
      console.log('url ' + listener.url)`
    const node = `exec ${JSON.stringify(process.execPath)} --input-type=module -e "$0"`
    const child = spawn('bash', ['-c', `ulimit -n 128; ${node}`, script], { stdio: ['ignore', 'pipe', 'inherit'] })
    sockets.closing({ close: () => child.kill('SIGKILL') })
    let output = ''
    child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
    await vi.waitFor(() => expect(output).toContain('url '), 10_000)
    const port = Number(/url http:\/\/[^:]+:(\d+)/.exec(output)?.[1])
    const clients: Socket[] = []
    for (let made = 0; made < 40; made++) {
      const client = connect(port, '127.0.0.1').on('error', () => {})
      clients.push(client)
      await once(client, 'connect')
    }
    sockets.closing({ close: () => clients.forEach((client) => client.destroy()) })
    // (128 - 64) / 2 connections are let in.
    await vi.waitFor(() => expect(output.match(/refused descriptors/g)).toHaveLength(8), 5000)
    expect(output.match(/connection limit reached, rejecting new connections/g)).toHaveLength(1)
    expect(output).toContain('"reason":"descriptors","max":32,"descriptors":128')
    clients[0]?.write(get('/'))
    expect(String((await once(clients[0] as Socket, 'data'))[0])).toContain('200 OK')
  })
})
