import type { Socket } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { after, monotonicNow, OutboundError } from '../../../src/core/index.ts'
import { createOutbound, type OutboundOptions } from '../../../src/net/index.ts'
import { createSockets } from '../../support/sockets.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const outbound = (options: Partial<OutboundOptions> = {}) => {
  return sockets.closing(createOutbound({ name: 'idp', clock: Date, ...options }))
}
const failure = async (promise: Promise<unknown>): Promise<OutboundError> => {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof OutboundError)) throw new Error('no OutboundError was thrown', { cause: error })
  return error
}

describe('an exchange', () => {
  it('sends method, path, headers and body as given and returns status, joined headers and body', async () => {
    const url = await sockets.http((request, response) => {
      const parts: Buffer[] = []
      request.on('data', (part: Buffer) => parts.push(part))
      request.on('end', () => {
        response.setHeader('X-Twice', ['a', 'b'])
        response.statusCode = 418
        response.end(
          `${request.method} ${request.url} ${String(request.headers['x-one'])} ${Buffer.concat(parts).toString()}`,
        )
      })
    })
    const answer = await outbound().request({
      method: 'POST',
      url: `${url}/a%2Fb?c=%20`,
      headers: { 'x-one': '1' },
      body: 'hi',
    })
    expect(answer.status).toBe(418)
    expect(answer.headers['x-twice']).toBe('a, b')
    expect(answer.body.toString()).toBe('POST /a%2Fb?c=%20 1 hi')
  })

  it('ends when the request says, where that is before the deadline, and begins nothing after', async () => {
    let requests = 0
    const url = await sockets.http(() => void (requests += 1))
    const client = outbound({ deadlineMs: 600_000, retry: true })
    const ending = (inMs: number) => client.request({ method: 'GET', url, endsAtMs: after(monotonicNow(), inMs) })
    expect((await failure(ending(80))).kind).toBe('timeout')
    expect(requests).toBe(1)
    expect((await failure(ending(-1))).kind).toBe('timeout')
    expect(requests).toBe(1)
  })

  it('returns a redirect as an answer', async () => {
    let requests = 0
    const url = await sockets.http((_request, response) => {
      requests++
      response.writeHead(302, { location: '/elsewhere' }).end()
    })
    expect((await outbound().request({ method: 'GET', url })).status).toBe(302)
    expect(requests).toBe(1)
  })

  it.each([
    ['before the headers', () => undefined],
    ['after the headers', (socket: Socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n12')],
  ])('ends at its deadline when the service stops answering %s', async (_name, answer) => {
    const closed: string[] = []
    const url = await sockets.tcp((socket) => {
      socket.on('data', () => answer(socket)).on('end', () => closed.push('closed'))
    })
    const error = await failure(outbound({ deadlineMs: 80 }).request({ method: 'GET', url }))
    expect(error).toMatchObject({ kind: 'timeout', limit: { amount: 80, unit: 'ms' } })
    await expect.poll(() => closed).toEqual(['closed'])
  })

  it.each([
    ['announced', { 'content-length': '2000' }],
    ['not announced', {}],
  ])('stops reading an answer over the size bound, %s', async (_name, headers) => {
    const url = await sockets.http((_request, response) => response.writeHead(200, headers).end('x'.repeat(2000)))
    expect(await failure(outbound({ maxBytes: 1999 }).request({ method: 'GET', url }))).toMatchObject({
      kind: 'too_large',
      limit: { amount: 1999, unit: 'bytes' },
    })
    expect((await outbound({ maxBytes: 2000 }).request({ method: 'GET', url })).body.length).toBe(2000)
  })

  it.each([
    ['connection refused', 'http://127.0.0.1:1/'],
    ['the URL is none', 'nonsense'],
    ['the scheme is foreign', 'ftp://127.0.0.1/'],
  ])('is unreachable when %s', async (_name, url) => {
    expect((await failure(outbound().request({ method: 'GET', url }))).kind).toBe('unreachable')
  })

  it.each([['HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n12'], ['HTTP/1.1 200 OK\r\nfoo'], ['']])(
    'is unreachable when the answer is %j and then the connection ends',
    async (text) => {
      const url = await sockets.tcp((socket) => socket.once('data', () => socket.end(text)))
      expect((await failure(outbound().request({ method: 'GET', url }))).kind).toBe('unreachable')
    },
  )

  it.each([
    ['HTTP/1.1 200 OK\r\nfoo\r\n\r\n'],
    ['HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n'],
    [`HTTP/1.1 200 OK\r\nx: ${'x'.repeat(70_000)}\r\n\r\n`],
    ['SSH-2.0-OpenSSH\r\n'],
  ])('is malformed when the response is %j, without a retry', async (text) => {
    let connections = 0
    const url = await sockets.tcp((socket) => {
      connections += 1
      socket.once('data', () => socket.end(text))
    })
    const client = outbound({ retry: true, random: () => 0 })
    expect((await failure(client.request({ method: 'GET', url }))).kind).toBe('malformed')
    expect(connections).toBe(1)
  })

  it('is refused after close', async () => {
    const url = await sockets.http((_request, response) => response.end())
    const client = outbound()
    await client.close()
    expect((await failure(client.request({ method: 'GET', url }))).kind).toBe('closed')
  })
})

describe('the retry', () => {
  it.each([
    [502, 2, 200],
    [503, 2, 200],
    [504, 2, 200],
    [500, 1, 500],
    [429, 1, 429],
    [400, 1, 400],
  ])('after a %i makes %i requests in all', async (status, expected, final) => {
    let requests = 0
    const url = await sockets.http((_request, response) => response.writeHead(++requests === 1 ? status : 200).end())
    const answer = await outbound({ retry: true, random: () => 0 }).request({ method: 'POST', url, body: 'a=b' })
    expect([requests, answer.status]).toEqual([expected, final])
  })

  it('follows one lost connection and no second', async () => {
    let connections = 0
    const url = await sockets.tcp((socket) => {
      connections++
      socket.once('data', () => socket.destroy())
    })
    expect((await failure(outbound({ retry: true, random: () => 0 }).request({ method: 'GET', url }))).kind).toBe(
      'unreachable',
    )
    expect(connections).toBe(2)
  })

  it('waits as long as the answer asks, and is not made where that is longer than what is left', async () => {
    const waits: number[] = []
    for (const seconds of [1, 60]) {
      let requests = 0
      const url = await sockets.http((_request, response) =>
        response.writeHead(++requests === 1 ? 503 : 200, { 'retry-after': String(seconds) }).end(),
      )
      const startedAt = performance.now()
      const client = outbound({ retry: true, random: () => 0, deadlineMs: 5000 })
      const { status } = await client.request({ method: 'GET', url })
      waits.push(performance.now() - startedAt)
      expect([seconds, status, requests]).toEqual([seconds, seconds === 1 ? 200 : 503, seconds === 1 ? 2 : 1])
    }
    expect(waits[0]).toBeGreaterThanOrEqual(990)
    expect(waits[1]).toBeLessThan(4000)
  })

  it('sends a request built again for it', async () => {
    const bodies: string[] = []
    const url = await sockets.http((request, response) => {
      request.on('data', (chunk: Buffer) => bodies.push(chunk.toString()))
      request.on('end', () => response.writeHead(bodies.length === 1 ? 503 : 200).end())
    })
    const request = { method: 'POST', url, body: 'one' } as const
    const again = () => Promise.resolve({ ...request, body: 'two' })
    await outbound({ retry: true, random: () => 0 }).request({ ...request, again })
    expect(bodies).toEqual(['one', 'two'])
  })

  it('is not made without the option', async () => {
    let requests = 0
    const url = await sockets.http((_request, response) => response.writeHead(++requests === 1 ? 503 : 200).end())
    expect((await outbound().request({ method: 'GET', url })).status).toBe(503)
  })
})
