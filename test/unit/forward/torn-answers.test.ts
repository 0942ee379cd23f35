import { constants } from 'node:http2'
import type { Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { afterEach, describe, expect, it } from 'vitest'
import { type FrameStream, serveFrames } from '../../support/http2-frames.ts'
import { rawConnect, type RawConnection } from '../../support/raw.ts'
import { createSockets } from '../../support/sockets.ts'
import { TLS } from '../../support/tls.ts'
import { type Front, startFront } from '../../support/forward/front.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const { NGHTTP2_NO_ERROR, NGHTTP2_CANCEL, NGHTTP2_INTERNAL_ERROR, NGHTTP2_ENHANCE_YOUR_CALM } = constants
const targetTls = { caCertPath: new URL('../../fixtures/tls/ca.pem', import.meta.url).pathname }

const ask = (front: Front): RawConnection => rawConnect(front.url, 'GET / HTTP/1.1\r\nhost: us\r\n\r\n')

/** A client's view of a response: `torn` if the connection ended before the last chunk, and the proxy reports it. */
const endOf = async (client: RawConnection, front: Front): Promise<'torn' | 'whole' | 'unclear'> => {
  await Promise.race([client.ended, client.until(/\r\n0\r\n\r\n$/)])
  await expect.poll(() => front.outcomes).toHaveLength(1)
  client.socket.destroy()
  const hasEnd = client.text().endsWith('\r\n0\r\n\r\n')
  const [outcome] = front.outcomes
  const isAborted = typeof outcome === 'object' && outcome.done && outcome.aborted
  return hasEnd === isAborted ? 'unclear' : hasEnd ? 'whole' : 'torn'
}

describe('an HTTP/2 answer', () => {
  const start = async (onRequest: (stream: FrameStream) => void): Promise<Front> => {
    const server = createTlsServer({ ...TLS.server, ALPNProtocols: ['h2'] }, (socket) => serveFrames(socket, onRequest))
    const origin = `https://${await sockets.listen(server)}`
    return startFront(sockets, { origin, backend: { http2: true, targetTls } })
  }
  const half = (stream: FrameStream): void => {
    stream.head()
    stream.data('half')
  }

  it.each([
    ['NO_ERROR', NGHTTP2_NO_ERROR],
    ['CANCEL', NGHTTP2_CANCEL],
    ['INTERNAL_ERROR', NGHTTP2_INTERNAL_ERROR],
    ['ENHANCE_YOUR_CALM', NGHTTP2_ENHANCE_YOUR_CALM],
  ])('that is reset in the middle with %s has no clean end', async (_name, code) => {
    let stream: FrameStream | undefined
    const front = await start((opened) => half((stream = opened)))
    const client = ask(front)
    await client.until(/half/)
    stream?.reset(code)
    expect(await endOf(client, front)).toBe('torn')
  })

  it('that is reset at once after its first bytes has no clean end', async () => {
    const front = await start((stream) => {
      half(stream)
      stream.reset(NGHTTP2_NO_ERROR)
    })
    expect(await endOf(ask(front), front)).toBe('torn')
  })

  it('whose connection goes away politely in the middle has no clean end', async () => {
    let stream: FrameStream | undefined
    const front = await start((opened) => half((stream = opened)))
    const client = ask(front)
    await client.until(/half/)
    stream?.goAway(NGHTTP2_NO_ERROR)
    expect(await endOf(client, front)).toBe('torn')
  })

  it.each([
    ['is not reset', undefined],
    ['is reset with NO_ERROR after its end', NGHTTP2_NO_ERROR],
  ])('is whole when it %s', async (_name, code) => {
    const front = await start((stream) => {
      half(stream)
      stream.data('whole', { end: true })
      if (code !== undefined) stream.reset(code)
    })
    const client = ask(front)
    expect(await endOf(client, front)).toBe('whole')
    expect(client.text()).toMatch(/half[^]*whole/)
  })

  it('that ends with its header section is whole', async () => {
    const front = await start((stream) => stream.head({ end: true }))
    expect(await endOf(ask(front), front)).toBe('whole')
  })

  it('whose reset comes before its head is a failure', async () => {
    const front = await start((stream) => stream.reset(NGHTTP2_CANCEL))
    const client = ask(front)
    expect(await client.until(/^HTTP\/1\.1 \d+ /)).toMatch(/ 502 /)
    client.socket.destroy()
  })
})

describe.each([
  ['on connections of our own', false],
  ['by undici', true],
])('an HTTP/1.1 answer that ends with its connection, %s,', (_way, byUndici) => {
  const HEAD = 'HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhalf'
  const start = async (): Promise<{ front: Front; backend: () => Socket | undefined }> => {
    let backend: Socket | undefined
    const origin = await sockets.tcp((socket) => {
      backend = socket
      socket.once('data', () => socket.write(HEAD))
    })
    return { front: await startFront(sockets, { origin, byUndici }), backend: () => backend }
  }

  it('is whole after a FIN', async () => {
    const { front, backend } = await start()
    const client = ask(front)
    await client.until(/half/)
    backend()?.end('whole')
    expect(await endOf(client, front)).toBe('whole')
  })

  it('is not whole after a reset', async () => {
    const { front, backend } = await start()
    const client = ask(front)
    await client.until(/half/)
    backend()?.resetAndDestroy()
    expect(await endOf(client, front)).toBe('torn')
  })

  it('is not whole after a reset on TLS either', async () => {
    const raw: Socket[] = []
    const server = createTlsServer(TLS.server, (socket) => {
      socket.on('error', () => undefined)
      socket.once('data', () => socket.write(HEAD))
    })
    server.on('connection', (socket: Socket) => raw.push(socket))
    const origin = `https://${await sockets.listen(server)}`
    const front = await startFront(sockets, { origin, backend: { targetTls } })
    const client = ask(front)
    await client.until(/half/)
    raw[0]?.resetAndDestroy()
    expect(await endOf(client, front)).toBe('torn')
  })
})
