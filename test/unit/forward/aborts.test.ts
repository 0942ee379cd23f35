import type { IncomingMessage, ServerResponse } from 'node:http'
import { afterEach, describe, expect, it } from 'vitest'
import { CLIENT_GONE_STATUS } from '../../../src/forward/index.ts'
import { rawConnect } from '../../support/raw.ts'
import { createSockets } from '../../support/sockets.ts'
import { startFront } from '../../support/forward/front.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

/** A backend that reports arrival and abort of a request; the test sends the response. */
const watchedBackend = async () => {
  const seen: string[] = []
  const answers: ServerResponse[] = []
  const requests: IncomingMessage[] = []
  const origin = await sockets.http((request, response) => {
    seen.push('request')
    requests.push(request)
    answers.push(response)
    request.resume()
    request.on('aborted', () => seen.push('request aborted'))
    response.on('close', () => seen.push(response.writableFinished ? 'answered' : 'closed'))
  })
  return { origin, seen, answers, requests }
}
const GET = 'GET / HTTP/1.1\r\nhost: us\r\n\r\n'

describe('a client that leaves', () => {
  it('before the answer ends the request at the backend at once', async () => {
    const backend = await watchedBackend()
    const front = await startFront(sockets, { origin: backend.origin })
    const client = rawConnect(front.url, GET)
    await expect.poll(() => backend.seen).toEqual(['request'])
    client.socket.destroy()
    await expect.poll(() => backend.seen).toContain('closed')
    expect(front.outcomes).toEqual([{ done: true, status: CLIENT_GONE_STATUS, firstByteAtMs: 0, aborted: true }])
  })

  it('in the middle of a stream ends it at the backend', async () => {
    const backend = await watchedBackend()
    const front = await startFront(sockets, { origin: backend.origin })
    const client = rawConnect(front.url, GET)
    await expect.poll(() => backend.answers.length).toBe(1)
    backend.answers[0]?.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n')
    await client.until(/data: 1/)
    client.socket.destroy()
    await expect.poll(() => backend.seen).toContain('closed')
    expect(front.outcomes).toMatchObject([{ done: true, status: 200, aborted: true }])
  })

  it('in the middle of its body ends the request at the backend', async () => {
    const backend = await watchedBackend()
    const front = await startFront(sockets, { origin: backend.origin })
    const client = rawConnect(front.url, 'POST / HTTP/1.1\r\nhost: us\r\ncontent-length: 100\r\n\r\nhalf')
    await expect.poll(() => backend.seen).toEqual(['request'])
    client.socket.destroy()
    await expect.poll(() => backend.seen).toContain('request aborted')
    await expect.poll(() => front.outcomes).toMatchObject([{ done: true, aborted: true }])
  })

  it('while the connection to the backend is being made leaves no request behind', async () => {
    const requests: string[] = []
    const connections: (() => void)[] = []
    const origin = await sockets.tcp((socket) => {
      connections.push(() => undefined)
      socket.on('data', (chunk) => requests.push(chunk.toString()))
    })
    const slow = origin.replace('http:', 'https:')
    const front = await startFront(sockets, { origin: slow })
    const client = rawConnect(front.url, GET)
    await expect.poll(() => connections.length).toBe(1)
    client.socket.destroy()
    await expect.poll(() => front.outcomes).toMatchObject([{ done: true, status: CLIENT_GONE_STATUS, aborted: true }])
    expect(requests.every((text) => !text.includes('GET'))).toBe(true)
  })

  it('with a second request still waiting for its turn asks the backend for nothing more', async () => {
    const backend = await watchedBackend()
    const front = await startFront(sockets, { origin: backend.origin })
    const client = rawConnect(front.url, GET + GET)
    await expect.poll(() => backend.answers.length).toBe(1)
    backend.answers[0]?.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n')
    await client.until(/data: 1/)
    client.socket.destroy()
    await expect.poll(() => backend.seen.filter((what) => what === 'closed')).toEqual(['closed'])
    expect(front.outcomes).toMatchObject([{ done: true, aborted: true }])
    expect(backend.answers).toHaveLength(1)
  })

  it('while it does not read is noticed, although the backend is paused', async () => {
    const backend = await watchedBackend()
    const front = await startFront(sockets, { origin: backend.origin })
    const client = rawConnect(front.url, GET)
    client.socket.pause()
    await expect.poll(() => backend.answers.length).toBe(1)
    const answer = backend.answers[0]
    const piece = Buffer.alloc(1024 * 1024)
    for (let i = 0; i < 40 && answer?.write(piece) !== undefined; i++);
    await new Promise((resolve) => setTimeout(resolve, 50))
    client.socket.destroy()
    await expect.poll(() => backend.seen).toContain('closed')
  })
})

describe('a backend that leaves', () => {
  it.each([
    ['a chunked answer', 'transfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n'],
    ['an answer with a length', 'content-length: 100\r\n\r\nhalf'],
    ['an event stream', 'content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n'],
  ])('in the middle of %s leaves the client without a clean end', async (_name, rest) => {
    const origin = await sockets.tcp((socket) => {
      socket.once('data', () => {
        socket.write(`HTTP/1.1 200 OK\r\n${rest}`)
        setTimeout(() => socket.destroy(), 20)
      })
    })
    const front = await startFront(sockets, { origin })
    const client = rawConnect(front.url, GET)
    await client.until(/half/)
    await client.ended
    expect(client.text()).not.toMatch(/0\r\n\r\n$/)
    expect(front.outcomes).toMatchObject([{ done: true, status: 200, aborted: true }])
    await expect(fetch(front.url).then((answer) => answer.text())).rejects.toThrow(/terminated|fetch failed/)
  })

  it('falls silent for longer than the idle bound is left', async () => {
    const backend = await watchedBackend()
    const front = await startFront(sockets, { origin: backend.origin, timeouts: { idle: 100 } })
    const client = rawConnect(front.url, GET)
    await expect.poll(() => backend.answers.length).toBe(1)
    backend.answers[0]?.writeHead(200).write('some')
    await client.until(/some/)
    await client.ended
    expect(front.outcomes).toMatchObject([{ done: true, status: 200, aborted: true }])
    await expect.poll(() => backend.seen).toContain('closed')
  })

  it('has its whole answer delivered when the end of it is the end of the connection', async () => {
    const origin = await sockets.tcp((socket) => {
      socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\n\r\nall of it'))
    })
    const front = await startFront(sockets, { origin })
    expect(await (await fetch(front.url)).text()).toBe('all of it')
    expect(front.outcomes).toMatchObject([{ done: true, status: 200, aborted: false }])
  })
})
