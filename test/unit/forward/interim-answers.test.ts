import { createSecureServer } from 'node:http2'
import { afterEach, describe, expect, it } from 'vitest'
import { rawConnect } from '../../support/raw.ts'
import { createSockets } from '../../support/sockets.ts'
import { TLS } from '../../support/tls.ts'
import { type Front, startFront } from '../../support/forward/front.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

/** A backend that says these things to each request. */
const startBy = async (
  byUndici: boolean,
  parts: readonly string[],
): Promise<{ front: Front; connections: () => number }> => {
  let connections = 0
  const origin = await sockets.tcp((socket) => {
    connections++
    let asked = ''
    socket.on('data', (chunk: Buffer) => {
      // Head and body may come apart; an answer to each would be one too many.
      asked += chunk.toString('latin1')
      if (!/hello$|^GET [^]*\r\n\r\n$/.test(asked)) return
      asked = ''
      const send = (index: number): void => {
        if (index < parts.length) socket.write(parts[index] ?? '', () => setImmediate(send, index + 1))
      }
      send(0)
    })
  })
  return { front: await startFront(sockets, { origin, byUndici }), connections: () => connections }
}

const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n'
const HINTS = 'HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\n\r\n'
const FINAL = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'

describe.each([
  ['on connections of our own', false],
  ['by undici', true],
])('interim answers of a backend %s', (_way, byUndici) => {
  const start = (...parts: readonly string[]) => startBy(byUndici, parts)

  it.each([
    ['an unsolicited 100', [CONTINUE + FINAL]],
    ['100, byte by byte', [...CONTINUE.split(''), FINAL]],
    ['several 100', [CONTINUE, CONTINUE + CONTINUE, FINAL]],
    ['100 with headers and 103', [`HTTP/1.1 100 Continue\r\nx-a: b\r\n\r\n${HINTS}`, FINAL]],
    ['as many as there may be', [CONTINUE.repeat(32), FINAL]],
  ])('%s are passed over, and the connection is used again', async (_name, parts) => {
    const { front, connections } = await start(...parts)
    for (let index = 0; index < 2; index++) {
      const answer = await fetch(front.url, { method: 'POST', body: 'hello' })
      expect([answer.status, await answer.text()]).toEqual([200, 'ok'])
    }
    expect(connections()).toBe(1)
  })

  it('do not prolong the time for the first byte of the answer', async () => {
    const origin = await sockets.tcp((socket) => {
      socket.on('data', () => {
        const again = setInterval(() => socket.write(HINTS), 100)
        socket.on('close', () => clearInterval(again))
      })
    })
    const { url } = await startFront(sockets, { origin, byUndici, timeouts: { firstByte: 400 } })
    const before = performance.now()
    expect((await fetch(url)).headers.get('reason')).toBe('backend_timeout')
    // 32 of them would take 3 s, after which too many have come.
    expect(performance.now() - before).toBeLessThan(2500)
  })

  it('103 reaches the client, 100 does not', async () => {
    const { front } = await start(CONTINUE + HINTS + FINAL)
    const client = rawConnect(front.url, 'GET / HTTP/1.1\r\nhost: us\r\n\r\n')
    const text = await client.until(/ok$/)
    expect(text).toMatch(/^HTTP\/1\.1 103 Early Hints\r\n[^]*HTTP\/1\.1 200 OK/)
    expect(text).not.toContain('100')
    client.socket.destroy()
  })

  it.each([
    ['100', CONTINUE],
    ['103', HINTS],
  ])('more than 32 of %s are a failure of the backend', async (_name, interim) => {
    const { front } = await start(interim.repeat(33), FINAL)
    const answer = await fetch(front.url, { method: 'POST', body: 'hello' })
    expect(answer.status).toBe(502)
    expect(front.outcomes).toEqual(['backend_error'])
  })

  it('a body that looks like one stays a body', async () => {
    const { front } = await start('HTTP/1.1 200 OK\r\ncontent-length: 25\r\n\r\n', CONTINUE)
    expect(await (await fetch(front.url)).text()).toBe(CONTINUE)
  })
})

describe('interim answers of a backend on HTTP/2', () => {
  it('are passed over as well', async () => {
    const server = createSecureServer(TLS.server)
    server.on('stream', (stream) => {
      stream.additionalHeaders({ ':status': 100 })
      stream.additionalHeaders({ ':status': 103, link: '</a.css>; rel=preload' })
      stream.respond({ ':status': 200 })
      stream.end('ok')
    })
    const origin = `https://${await sockets.listen(server)}`
    const targetTls = { caCertPath: new URL('../../fixtures/tls/ca.pem', import.meta.url).pathname }
    const front = await startFront(sockets, { origin, backend: { http2: true, targetTls } })
    expect(await (await fetch(front.url)).text()).toBe('ok')
  })
})
