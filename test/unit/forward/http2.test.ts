import { createSecureServer, type ServerHttp2Stream } from 'node:http2'
import { afterEach, describe, expect, it } from 'vitest'
import { rawConnect } from '../../support/raw.ts'
import { createSockets } from '../../support/sockets.ts'
import { TLS } from '../../support/tls.ts'
import { type Front, startFront } from '../../support/forward/front.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const targetTls = { caCertPath: new URL('../../fixtures/tls/ca.pem', import.meta.url).pathname }

const startH2 = async (
  onStream: (stream: ServerHttp2Stream, headers: Record<string, unknown>) => void,
): Promise<{ front: Front; sessions: () => number }> => {
  let sessions = 0
  const server = createSecureServer(TLS.server)
  server
    .on('session', () => sessions++)
    .on('stream', (stream, headers) =>
      onStream(
        stream.on('error', () => undefined),
        headers,
      ),
    )
  const origin = `https://${await sockets.listen(server)}`
  return { front: await startFront(sockets, { origin, backend: { http2: true, targetTls } }), sessions: () => sessions }
}

describe('a backend that speaks HTTP/2', () => {
  it('gets the sealed request, body included, and its answer arrives as HTTP/1.1', async () => {
    const { front } = await startH2((stream, headers) => {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        stream.respond({
          ':status': 200,
          'x-seen': `${String(headers[':method'])} ${String(headers[':path'])}`,
          'set-cookie': 'a',
        })
        stream.end(Buffer.concat(chunks))
      })
    })
    const answer = await fetch(`${front.url}/a%2Fb?c`, { method: 'POST', body: 'hello' })
    expect([answer.status, answer.headers.get('x-seen'), await answer.text()]).toEqual([200, 'POST /a%2Fb?c', 'hello'])
    expect(answer.headers.has('set-cookie')).toBe(false)
  })

  it('serves many requests on one connection, and keeps the others when one client leaves', async () => {
    const closed: string[] = []
    const { front, sessions } = await startH2((stream, headers) => {
      const path = String(headers[':path'])
      stream.on('close', () => closed.push(path))
      stream.respond({ ':status': 200, 'content-type': 'text/event-stream' })
      stream.write(`data: ${path}\n\n`)
    })
    const open = (path: string) => rawConnect(front.url, `GET ${path} HTTP/1.1\r\nhost: us\r\n\r\n`)
    const [leaving, staying] = [open('/leaving'), open('/staying')]
    await Promise.all([leaving.until(/data: \/leaving/), staying.until(/data: \/staying/)])
    leaving.socket.destroy()
    await expect.poll(() => closed).toEqual(['/leaving'])
    expect(sessions()).toBe(1)
    expect(front.outcomes).toMatchObject([{ done: true, status: 200, aborted: true }])
    staying.socket.destroy()
  })

  it('that resets a stream in the middle leaves the client without a clean end', async () => {
    const { front } = await startH2((stream) => {
      stream.respond({ ':status': 200 })
      stream.write('half')
      setTimeout(() => stream.destroy(new Error('broken')), 20)
    })
    await expect(fetch(front.url).then((answer) => answer.text())).rejects.toThrow(/terminated/)
    expect(front.outcomes).toMatchObject([{ done: true, status: 200, aborted: true }])
  })

  it('waits for a client that reads slowly', async () => {
    let written = 0
    const { front } = await startH2((stream) => {
      stream.respond({ ':status': 200 })
      const more = (): void => {
        while (written < 64 * 1024 * 1024) {
          written += 65_536
          if (!stream.write(Buffer.alloc(65_536))) {
            stream.once('drain', more)
            return
          }
        }
        stream.end()
      }
      more()
    })
    const client = rawConnect(front.url, 'GET / HTTP/1.1\r\nhost: us\r\n\r\n')
    client.socket.pause()
    let last = -1
    while (last !== written) {
      last = written
      await new Promise((resolve) => setTimeout(resolve, 150))
    }
    expect(written).toBeLessThan(32 * 1024 * 1024)
    client.socket.destroy()
  })

  it('is reached over HTTP/1.1 for an upgrade', async () => {
    const server = createSecureServer({ ...TLS.server, allowHTTP1: true })
    server.on('upgrade', (_request, socket) => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\nhello')
    })
    const origin = `https://${await sockets.listen(server)}`
    const front = await startFront(sockets, { origin, backend: { http2: true, targetTls } })
    const text = 'GET / HTTP/1.1\r\nhost: us\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n'
    const client = rawConnect(front.url, text)
    expect(await client.until(/hello/)).toMatch(/^HTTP\/1.1 101 /)
    client.socket.destroy()
  })
})
