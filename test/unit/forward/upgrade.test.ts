import { createServer } from 'node:http'
import type { Duplex } from 'node:stream'
import { afterEach, describe, expect, it } from 'vitest'
import { rawConnect } from '../../support/raw.ts'
import { createSockets } from '../../support/sockets.ts'
import { startFront } from '../../support/forward/front.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const UPGRADE = [
  'GET /chat?x=%2F HTTP/1.1',
  'host: us',
  'connection: Upgrade',
  'upgrade: websocket',
  'sec-websocket-key: abc',
  'x-test: 1',
  '\r\n',
].join('\r\n')

/** A backend that switches protocols, with the socket of the last connection. */
const switchingBackend = async () => {
  const seen: { head: string; socket: Duplex | undefined } = { head: '', socket: undefined }
  const server = createServer((_request, response) => response.writeHead(426).end('no'))
  server.on('upgrade', (request, socket) => {
    seen.head = `${request.method} ${request.url} ${JSON.stringify(request.headers)}`
    seen.socket = socket
    socket.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\nset-cookie: a\r\n')
    socket.write('sec-websocket-accept: xyz\r\n\r\nearly')
  })
  return { origin: `http://${await sockets.listen(server)}`, seen }
}

describe('an upgraded connection', () => {
  it('carries the sealed request, and the answer under the response policy', async () => {
    const { origin, seen } = await switchingBackend()
    const { url } = await startFront(sockets, { origin, responseHeaders: ['x-request-id', 'id-1'] })
    const client = rawConnect(url, UPGRADE)
    const text = await client.until(/early$/)
    expect(seen.head).toContain('GET /chat?x=%2F')
    expect(seen.head).toContain('"upgrade":"websocket"')
    expect(seen.head).toContain('"x-test":"1"')
    expect(text.split('\r\n')).toEqual([
      'HTTP/1.1 101 Switching Protocols',
      'connection: upgrade',
      'upgrade: websocket',
      'sec-websocket-accept: xyz',
      'x-request-id: id-1',
      '',
      'early',
    ])
  })

  it('passes bytes both ways, those sent too early included', async () => {
    const { origin, seen } = await switchingBackend()
    const { url } = await startFront(sockets, { origin })
    const client = rawConnect(url, `${UPGRADE}first`)
    await client.until(/early$/)
    let received = ''
    seen.socket?.on('data', (chunk: Buffer) => {
      received += chunk.toString()
      seen.socket?.write(`<${chunk.toString()}>`)
    })
    client.socket.write('second')
    await expect.poll(() => received).toBe('firstsecond')
    await client.until(/second>/)
  })

  it.each(['client', 'backend'] as const)('can be closed in one direction by the %s', async (who) => {
    const { origin, seen } = await switchingBackend()
    const front = await startFront(sockets, { origin })
    const client = rawConnect(url(front), UPGRADE)
    client.socket.allowHalfOpen = true
    await client.until(/early$/)
    const backend = seen.socket
    if (backend === undefined) throw new Error('the backend saw no upgrade')
    let received = ''
    backend.on('data', (chunk: Buffer) => (received += chunk.toString()))
    if (who === 'client') {
      const ended = new Promise((resolve) => backend.once('end', resolve))
      client.socket.end()
      await ended
      backend.end('answer')
      await client.until(/answer$/)
    } else {
      const ended = new Promise((resolve) => client.socket.once('end', resolve))
      backend.end()
      await ended
      client.socket.end('answer')
      await expect.poll(() => received).toBe('answer')
    }
    await expect.poll(() => front.outcomes).toMatchObject([{ done: true, status: 101, aborted: false }])
  })

  it.each(['client', 'backend'] as const)('breaks for both when the %s breaks', async (who) => {
    const { origin, seen } = await switchingBackend()
    const front = await startFront(sockets, { origin })
    const client = rawConnect(url(front), UPGRADE)
    await client.until(/early$/)
    let closed = false
    const noticed = (): void => void (closed = true)
    seen.socket?.on('close', noticed).on('end', noticed).on('error', noticed)
    seen.socket?.resume()
    if (who === 'client') client.socket.resetAndDestroy()
    else seen.socket?.destroy()
    await client.ended
    await expect.poll(() => closed).toBe(true)
    await expect.poll(() => front.outcomes).toHaveLength(1)
  })

  it('can be ended from outside', async () => {
    let end = (): void => undefined
    const { origin, seen } = await switchingBackend()
    const front = await startFront(sockets, { origin, onStream: (given) => (end = given) })
    const client = rawConnect(url(front), UPGRADE)
    await client.until(/early$/)
    seen.socket?.resume()
    end()
    expect(await client.ended).toBe('end')
  })
})

describe('an upgrade that the backend refuses', () => {
  it('is answered like every other request', async () => {
    const origin = await sockets.http((_request, response) => {
      response.writeHead(426, { 'x-why': 'no', 'set-cookie': 'a' }).end('not here')
    })
    const front = await startFront(sockets, { origin })
    const client = rawConnect(url(front), UPGRADE)
    const text = await client.until(/not here/)
    expect(text).toMatch(/^HTTP\/1.1 426 [^]*x-why: no/)
    expect(text).not.toMatch(/set-cookie/)
    expect(front.outcomes).toMatchObject([{ done: true, status: 426, aborted: false }])
  })

  it('with 401 is not the caller’s business', async () => {
    const origin = await sockets.http((_request, response) => response.writeHead(401).end())
    const front = await startFront(sockets, { origin })
    const client = rawConnect(url(front), UPGRADE)
    expect(await client.until(/\r\n\r\n/)).toMatch(/^HTTP\/1.1 599 /)
    expect(front.outcomes).toMatchObject([{ done: false, again: { reason: 'credential_rejected' } }])
  })

  it('by not being there is 502', async () => {
    const front = await startFront(sockets, { origin: 'http://127.0.0.1:1' })
    expect(await rawConnect(url(front), UPGRADE).until(/\r\n\r\n/)).toMatch(/^HTTP\/1.1 502 /)
  })
})

const url = (front: { url: string }): string => front.url
