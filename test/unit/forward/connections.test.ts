import { afterEach, describe, expect, it } from 'vitest'
import { createSockets } from '../../support/sockets.ts'
import { startFront } from '../../support/forward/front.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const reasonOf = async (url: string, init: RequestInit = {}): Promise<string> => {
  const answer = await fetch(url, init)
  await answer.text()
  return answer.headers.get('reason') ?? answer.headers.get('again') ?? String(answer.status)
}
const post = { method: 'POST', body: '{}' }

describe('a backend that cannot be reached', () => {
  it.each([
    ['connection refused', 'http://127.0.0.1:1'],
    ['the name does not exist', 'http://nowhere.invalid'],
  ])('because %s is 502, and not tried again', async (_name, origin) => {
    expect(await reasonOf((await startFront(sockets, { origin })).url)).toBe('backend_unreachable')
  })

  it('because it speaks no TLS is 502', async () => {
    const origin = (await sockets.tcp((socket) => socket.end('hello'))).replace('http:', 'https:')
    expect(await reasonOf((await startFront(sockets, { origin })).url)).toBe('backend_unreachable')
  })

  it('because TLS does not get done in time is 502', async () => {
    const origin = (await sockets.tcp(() => undefined)).replace('http:', 'https:')
    const { url } = await startFront(sockets, { origin, timeouts: { connect: 100 } })
    expect(await reasonOf(url)).toBe('backend_unreachable')
  })
})

describe('a first byte', () => {
  it('that takes longer than its bound is 504, and the request ends at the backend', async () => {
    let closed = false
    const origin = await sockets.http((_request, response) => response.on('close', () => (closed = true)))
    const { url } = await startFront(sockets, { origin, timeouts: { firstByte: 80 } })
    expect(await reasonOf(url, post)).toBe('backend_timeout')
    await expect.poll(() => closed).toBe(true)
  })

  it('has no bound with 0, and a body that is still being sent does not count', async () => {
    const origin = await sockets.http((request, response) => {
      request.resume().on('end', () => response.end('ok'))
    })
    const { url } = await startFront(sockets, { origin, timeouts: { firstByte: 150 } })
    async function* slowly() {
      for (let index = 0; index < 8; index++) {
        await new Promise((resolve) => setTimeout(resolve, 50))
        yield Buffer.from('x')
      }
    }
    const answer = await fetch(url, { method: 'POST', body: slowly(), duplex: 'half' })
    expect(await answer.text()).toBe('ok')
  })
})

describe.each([
  ['on connections of our own', false],
  ['by undici', true],
])('a malformed answer %s', (_way, byUndici) => {
  it.each([
    ['no HTTP', 'SSH-2.0-OpenSSH_9.9\r\n\r\n'],
    ['two different lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nabc'],
    [
      'length and chunks',
      'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    ],
    ['a broken header line', 'HTTP/1.1 200 OK\r\nno colon here\r\n\r\n'],
    ['a folded header', 'HTTP/1.1 200 OK\r\na: b\r\n c\r\nx\r\n\r\n'],
    ['a NUL in a header', 'HTTP/1.1 200 OK\r\na: b\0c\r\n\r\n'],
    ['a header section without end', `HTTP/1.1 200 OK\r\n${'a: b\r\n'.repeat(20_000)}`],
    ['a bad status', 'HTTP/1.1 9999 OK\r\n\r\n'],
  ])('with %s is 502', async (_name, text) => {
    const origin = await sockets.tcp((socket) => socket.once('data', () => socket.end(text, 'latin1')))
    const { url } = await startFront(sockets, { origin, byUndici, final: true })
    expect(await reasonOf(url, post)).toBe('backend_error')
  })

  it('with a broken chunk ends the client connection', async () => {
    const origin = await sockets.tcp((socket) => {
      socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\nzz\r\n'))
    })
    const { url } = await startFront(sockets, { origin, byUndici })
    await expect(fetch(url).then((answer) => answer.text())).rejects.toThrow(/terminated/)
  })
})

describe('a connection that is lost before the answer', () => {
  const losing = () => sockets.tcp((socket) => socket.once('data', () => socket.destroy()))

  it.each(['GET', 'HEAD', 'DELETE', 'PUT', 'OPTIONS'])('may be tried again for %s', async (method) => {
    const front = await startFront(sockets, { origin: await losing(), keepBody: true })
    await fetch(front.url, { method })
    expect(front.outcomes).toMatchObject([{ done: false, again: { reason: 'connection_lost' } }])
  })

  it.each([
    ['the method changes something', { keepBody: true }, post],
    ['the body is gone', {}, { method: 'PUT', body: '{}' }],
  ])('is 502 when %s', async (_name, options, init) => {
    const { url } = await startFront(sockets, { origin: await losing(), ...options })
    expect(await reasonOf(url, init)).toBe('backend_no_answer')
  })

  it('is not used when the backend closed it while it was idle', async () => {
    let connections = 0
    const origin = await sockets.tcp((socket) => {
      connections++
      socket.once('data', () => {
        socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok')
        setTimeout(() => socket.end(), 10)
      })
    })
    const { url } = await startFront(sockets, { origin })
    for (let index = 0; index < 4; index++) {
      expect(await reasonOf(url, post)).toBe('200')
      await new Promise((resolve) => setTimeout(resolve, 30))
    }
    expect(connections).toBe(4)
  })

  it('is reused while it lives, and there are as many as requests at a time', async () => {
    const used = new Set<unknown>()
    // Answers wait for each other, so that none is free when the next request comes.
    const held: (() => void)[] = []
    let together = 1
    const origin = await sockets.http((request, response) => {
      used.add(request.socket)
      held.push(() => response.end('ok'))
      if (held.length >= together) for (const answer of held.splice(0)) answer()
    })
    const { url } = await startFront(sockets, { origin })
    for (let index = 0; index < 3; index++) await reasonOf(url)
    expect(used.size).toBe(1)
    together = 30
    await Promise.all(Array.from({ length: 30 }, () => reasonOf(url)))
    expect(used.size).toBe(30)
  })
})
