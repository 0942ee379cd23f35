import { afterEach, describe, expect, it } from 'vitest'
import { createSockets } from '../../support/sockets.ts'
import { rawConnect } from '../../support/raw.ts'
import { startFront } from '../../support/forward/front.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const request = (method: string, path: string): string => `${method} ${path} HTTP/1.1\r\nhost: us\r\n\r\n`

describe('an answer', () => {
  it('keeps status, end-to-end headers and their repetitions, and adds ours', async () => {
    const origin = await sockets.http((_request, response) => {
      response.writeHead(201, ['X-One', '1', 'X-Two', 'a', 'X-Two', 'b', 'Content-Type', 'application/json'])
      response.end('{}')
    })
    const { url } = await startFront(sockets, { origin, responseHeaders: ['x-request-id', 'id-1'] })
    const answer = await fetch(url)
    expect(answer.status).toBe(201)
    expect(await answer.text()).toBe('{}')
    expect(answer.headers.get('x-one')).toBe('1')
    expect(answer.headers.get('x-two')).toBe('a, b')
    expect(answer.headers.get('x-request-id')).toBe('id-1')
  })

  it('loses what is between neighbours, what logs in elsewhere and what speaks for another origin', async () => {
    const origin = await sockets.tcp((socket) => {
      socket.once('data', () =>
        socket.end(
          [
            'HTTP/1.1 200 OK',
            'Connection: close, X-Hop',
            'X-Hop: 1',
            'Keep-Alive: timeout=5',
            'Set-Cookie: a=b',
            'WWW-Authenticate: Bearer',
            'Alt-Svc: h3=":443"',
            'Access-Control-Allow-Origin: *',
            'X-Kept: yes',
            'Content-Length: 2',
            '\r\nok',
          ].join('\r\n'),
        ),
      )
    })
    const { url } = await startFront(sockets, { origin })
    const answer = await fetch(url)
    const names = [...answer.headers.keys()].toSorted()
    expect(names).toEqual(['connection', 'content-length', 'date', 'keep-alive', 'x-kept'])
    expect(answer.headers.get('connection')).toBe('keep-alive')
  })

  it('has its session id in the form that is bound to the caller', async () => {
    const origin = await sockets.http((_request, response) => response.writeHead(200, { 'Mcp-Session-Id': 's1' }).end())
    const bound = await startFront(sockets, { origin, sessionToClient: (id) => `${id}.mac` })
    const open = await startFront(sockets, { origin })
    expect((await fetch(bound.url)).headers.get('mcp-session-id')).toBe('s1.mac')
    expect((await fetch(open.url)).headers.get('mcp-session-id')).toBe('s1')
  })

  it.each([
    ['GET', 204, 'HTTP/1.1 204 No Content\r\n\r\n'],
    ['GET', 304, 'HTTP/1.1 304 Not Modified\r\netag: "x"\r\ncontent-length: 10\r\n\r\n'],
    ['HEAD', 200, 'HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n'],
    ['HEAD', 200, 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'],
  ])('to %s with %i has no body and leaves the connection usable', async (method, status, text) => {
    const origin = await sockets.tcp((socket) => socket.on('data', () => socket.write(text)))
    const { url } = await startFront(sockets, { origin })
    const connection = rawConnect(url, request(method, '/'))
    const first = await connection.until(/\r\n\r\n/)
    expect(first).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
    if (text.includes('content-length')) expect(first).toMatch(/content-length: 10/)
    expect(first.split('\r\n\r\n')[1]).toBe('')
    connection.socket.write(request(method, '/'))
    await connection.until(new RegExp(`HTTP/1.1 ${status} [^]*HTTP/1.1 ${status} `))
    connection.socket.destroy()
  })

  it('is preceded by the interim answers that mean something', async () => {
    const origin = await sockets.tcp((socket) => {
      socket.once('data', () => {
        socket.write('HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>; rel=preload\r\n\r\n')
        socket.write('HTTP/1.1 103 Early Hints\r\nx-a: b\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok')
      })
    })
    const { url } = await startFront(sockets, { origin })
    const connection = rawConnect(url, request('GET', '/'))
    const text = await connection.until(/ok$/)
    expect(text.match(/HTTP\/1.1 \d+|link: .*/gi)).toEqual([
      'HTTP/1.1 102',
      'HTTP/1.1 103',
      'link: </a>; rel=preload',
      'HTTP/1.1 200',
    ])
    connection.socket.destroy()
  })

  it('loses its trailers', async () => {
    const origin = await sockets.tcp((socket) => {
      socket.once('data', () =>
        socket.write(
          'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n2\r\nok\r\n0\r\nx-sum: 1\r\n\r\n',
        ),
      )
    })
    const { url } = await startFront(sockets, { origin })
    const connection = rawConnect(url, request('GET', '/'))
    expect(await connection.until(/0\r\n\r\n$/)).not.toMatch(/x-sum/)
    connection.socket.destroy()
  })

  it('leaves with its head before the body comes', async () => {
    let finish = (): void => undefined
    const origin = await sockets.http((_request, response) => {
      response.writeHead(200).flushHeaders()
      finish = () => response.end('late')
    })
    const { url } = await startFront(sockets, { origin })
    const answer = await fetch(url)
    expect(answer.status).toBe(200)
    finish()
    expect(await answer.text()).toBe('late')
  })

  it('that comes before the request body has arrived ends the connection after it', async () => {
    const origin = await sockets.http((_request, response) => response.writeHead(413).end('too much'))
    const { url } = await startFront(sockets, { origin })
    const connection = rawConnect(url, 'POST / HTTP/1.1\r\nhost: us\r\ncontent-length: 100000\r\n\r\nx')
    expect(await connection.until(/too much/)).toMatch(/^HTTP\/1.1 413[^]*connection: close/i)
    expect(await connection.ended).toBe('end')
  })
})

describe('a 401', () => {
  it.each([
    [false, 599, 'credential_rejected'],
    [true, 599, 'credential_rejected'],
  ])('in the last attempt %s never reaches the caller', async (final, status, reason) => {
    const origin = await sockets.http((_request, response) => response.writeHead(401).end('log in'))
    const { url } = await startFront(sockets, { origin, final })
    const answer = await fetch(url)
    expect(answer.status).toBe(status)
    expect(`${answer.headers.get('again')} ${answer.headers.get('reason')}`).toContain(reason)
    expect(await answer.text()).toBe('')
  })

  it('with an endless body is aborted', async () => {
    let closed = 0
    const origin = await sockets.http((_request, response) => {
      response.writeHead(401)
      const timer = setInterval(() => response.write('x'.repeat(16_384)), 1)
      response.on('close', () => {
        clearInterval(timer)
        closed++
      })
    })
    const { url } = await startFront(sockets, { origin })
    expect((await fetch(url)).status).toBe(599)
    await expect.poll(() => closed).toBe(1)
  })

  it('with a short body leaves its connection to the next request', async () => {
    const connections = new Set<unknown>()
    const origin = await sockets.http((incoming, response) => {
      connections.add(incoming.socket)
      response.writeHead(401).end('log in')
    })
    const { url } = await startFront(sockets, { origin })
    for (let i = 0; i < 3; i++) await fetch(url)
    expect(connections.size).toBe(1)
  })

  it('is different from a 403, which passes with its body', async () => {
    const origin = await sockets.http((_request, response) => response.writeHead(403).end('not yours'))
    const { url } = await startFront(sockets, { origin })
    const answer = await fetch(url)
    expect([answer.status, await answer.text()]).toEqual([403, 'not yours'])
  })
})
