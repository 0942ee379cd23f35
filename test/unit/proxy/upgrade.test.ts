import type { Duplex } from 'node:stream'
import { createServer, type IncomingMessage } from 'node:http'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { Failure } from '../../../src/core/index.ts'
import { rawConnect } from '../../support/raw.ts'
import { createSockets } from '../../support/sockets.ts'
import { createRoute, headerCredential, runtimeOf, startProxy, type RouteOptions } from '../../support/proxy/harness.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const ASK =
  'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: abc\r\nAuthorization: Bearer callers-own\r\n'

/** A backend that upgrades, then says everything back, and hangs up when the other side does (or never). */
async function start(options: RouteOptions = {}, ends = true) {
  const seen: IncomingMessage[] = []
  const server = createServer((_, response) => void response.writeHead(426).end('no'))
  server.on('upgrade', (request: IncomingMessage, socket: Duplex) => {
    seen.push(request)
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello;')
    socket.on('data', (data: Buffer) => socket.write(`echo ${data.toString()};`))
    socket.on('error', () => undefined)
    if (ends) socket.on('end', () => socket.end())
  })
  const origin = `http://${await sockets.listen(server)}`
  const route = createRoute(sockets, origin, {
    allowUpgrade: true,
    ownedHeaders: ['x-key'],
    credential: () => headerCredential('x-key', 'ours'),
    ...options,
  })
  return { proxy: await startProxy(sockets, runtimeOf([route])), seen }
}

const open = (url: string, method = 'GET', rest = '') =>
  rawConnect(url, `${method} /ws HTTP/1.1\r\nHost: localhost\r\n${ASK}\r\n${rest}`)

describe('upgraded connections', () => {
  it('carry the same sealed request and then bytes both ways', async () => {
    const { proxy, seen } = await start()
    const client = open(proxy.url, 'GET', 'early')
    await client.until(/^HTTP\/1\.1 101 .*hello;.*echo early;/s)
    client.socket.write('late')
    await client.until(/echo late;/)
    expect(seen[0]?.headers).toMatchObject({ 'x-key': 'ours', 'sec-websocket-key': 'abc', upgrade: 'websocket' })
    expect(seen[0]?.headers.authorization).toBeUndefined()
    client.socket.destroy()
    await vi.waitFor(() => expect(proxy.log.lines.join()).toContain('"status":101'))
  })

  it('are refused where the route does not allow them', async () => {
    const { proxy, seen } = await start({ allowUpgrade: false })
    const client = open(proxy.url)
    expect(await client.until(/\}\}\}/)).toMatch(/^HTTP\/1\.1 501 .*"reason":"upgrade_refused"/s)
    expect(await client.ended).toBe('end')
    expect(seen).toHaveLength(0)
  })

  it('are refused for unknown callers and for other methods', async () => {
    const unknown = await start({
      caller: () => {
        throw new Failure('missing_token')
      },
    })
    expect(await open(unknown.proxy.url).until(/\}\}\}/)).toMatch(/^HTTP\/1\.1 401 /)
    const { proxy, seen } = await start()
    expect(await open(proxy.url, 'POST').until(/\}\}\}/)).toMatch(/^HTTP\/1\.1 400 /)
    expect(seen).toHaveLength(0)
  })

  it.each([true, false])('end with the drain, whether the backend hangs up (%s) or not', async (ends) => {
    const { proxy } = await start({}, ends)
    const client = open(proxy.url)
    await client.until(/hello;/)
    await proxy.drain(60_000)
    expect(await client.ended).toBe('end')
    await vi.waitFor(() => expect(proxy.log.lines.join()).toContain('"status":101'))
  })
})
