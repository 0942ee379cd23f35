import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { connect } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { afterEach, describe, expect, it, vi } from 'vitest'
import type { ClientRequest, ClientResponse } from '../../../src/core/index.ts'
import { IN_PROCESS } from '../../../src/listen/index.ts'
import { rawConnect } from '../../support/raw.ts'
import { createSockets } from '../../support/sockets.ts'
import { TLS } from '../../support/tls.ts'
import { get, passTime, post, startListener } from '../../support/listen/harness.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

type Serve = (request: ClientRequest, response: ClientResponse) => void

/** Says method, target, header lines and body of a request. */
const echo: Serve = (request, response) => {
  const body: Buffer[] = []
  request.on('data', (chunk: Buffer) => body.push(chunk))
  request.on('end', () => {
    const { method, url, httpVersion, headers, headersDistinct, rawHeaders } = request
    const seen = { method, url, httpVersion, headers, headersDistinct, rawHeaders }
    response.end(`${JSON.stringify(seen)}[${Buffer.concat(body).toString('latin1')}]`)
  })
}

const LAST = 'GET /last HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n'

/** Everything that a client is answered that sends this; a request that ends the connection is put behind it. */
async function answersAt(origin: string, text: string): Promise<string> {
  const client = rawConnect(origin, text + LAST)
  await client.ended
  return client.text().replaceAll(/^Date: .*$/gm, 'Date: now')
}

const answersOf = async (serve: Serve, text: string): Promise<string> =>
  answersAt((await startListener(sockets, serve)).url, text)

/** The same of Node's server. */
async function nodesAnswersOf(serve: Serve, text: string): Promise<string> {
  const server = createServer(
    { keepAliveTimeout: 75_000, requireHostHeader: false, insecureHTTPParser: false },
    serve as unknown as RequestListener,
  )
  return answersAt(`http://${await sockets.listen(server)}`, text)
}

const chunked = `POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n0\r\nA: b\r\n\r\n`
const HEAD = get('/h').replace('GET', 'HEAD')
const TWICE = ['Host', 'Accept', 'Cookie', 'Authorization', 'Set-Cookie', 'Content-Type']
  .map((name) => `${name}: a\r\n${name.toLowerCase()}: b\r\n`)
  .join('')
  .concat('\r\n')

describe('a request is what it is to Node’s server', () => {
  it.each([
    ['GET', get('/a?b=c')],
    ['header lines', get('/').replace('\r\n\r\n', '\r\nX-A:\t b \r\nACCEPT: */*\r\nX-Empty:\r\nX-Latin: \xe9\r\n\r\n')],
    ['a body', post('/b', 'body')],
    ['a body without bytes', post('/b', '')],
    ['a large body', post('/b', 'x'.repeat(300_000))],
    ['chunks', chunked],
    ['several', get('/1') + chunked + post('/2', 'b') + HEAD + get('/3')],
    ['one that asks to stay', get('/').replace('\r\n\r\n', '\r\nConnection: Keep-Alive\r\n\r\n')],
    ['a name twice', get('/').replace('\r\n\r\n', '\r\nX-A: b\r\nx-a: c\r\n\r\n')],
    ['absolute-form behind a plain one', get('/1') + get('http://h/2') + get('/3')],
    ['names of all kinds twice', get('/').replace('\r\n\r\n', `\r\n${TWICE}`)],
    ['another method', get('/').replace('GET', 'PROPFIND')],
    ['asterisk-form', get('*').replace('GET', 'OPTIONS')],
    ['empty lines before it', `\r\n\r\n${get('/1')}\r\n${get('/2')}`],
    ['several blanks', get('/').replaceAll(/ (?=\/|HTTP)/g, '   ')],
    ['a tab behind a value', get('/').replace('\r\n\r\n', '\r\nX-A: b \t\r\n\r\n')],
    ['what it says of the connection', get('/').replace('\r\n\r\n', '\r\nConnection: x-a, Keep-Alive\r\n\r\n')],
    ['an upgrade that does not say so', get('/').replace('\r\n\r\n', '\r\nUpgrade: h2c\r\n\r\n')],
    ['an unexpected body', get('/').replace('\r\n\r\n', '\r\nContent-Length: 2\r\n\r\nab')],
  ])('%s', async (_what, text) => {
    const answer = await answersOf(echo, text)
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
    expect(answer).toBe(await nodesAnswersOf(echo, text))
  })
})

describe('an answer is that of Node’s server', () => {
  it.each<[string, Serve]>([
    ['a body at its end', (_request, response) => void response.end('body')],
    ['no body', (_request, response) => void response.end()],
    ['pieces', (_request, response) => (response.write('one'), void response.end('two'))],
    ['an empty end', (_request, response) => (response.write('one'), void response.end())],
    ['an empty piece', (_request, response) => (response.write('a'), void response.write(''), void response.end())],
    ['a length', (_request, response) => void response.writeHead(201, ['content-length', '2']).end('ab')],
    ['flat headers', (_request, response) => void response.writeHead(404, ['x-a', 'b', 'X-A', 'c']).end('ab')],
    ['a head that is flushed', (_request, response) => (response.flushHeaders(), void response.end('ab'))],
    ['204', (_request, response) => void response.writeHead(204).end()],
    ['204 with a body', (_request, response) => void response.writeHead(204).end('ab')],
    ['304 with a length', (_request, response) => void response.writeHead(304, ['content-length', '9']).end()],
    ['a date of its own', (_request, response) => void response.writeHead(200, ['date', 'then']).end('ab')],
    [
      'the end of the connection',
      (_request, response) => void response.writeHead(200, ['connection', 'close']).end('a'),
    ],
    ['a large body', (_request, response) => void response.end(Buffer.alloc(200_000, 'x'))],
    ['a large piece', (_request, response) => (response.write(Buffer.alloc(200_000, 'x')), void response.end('y'))],
    ['a status without a name', (_request, response) => void response.writeHead(599).end('ab')],
  ])('%s', async (_what, serve) => {
    const lines = (text: string): string[] => text.toLowerCase().split('\r\n').toSorted()
    for (const text of ['', get('/1'), HEAD]) {
      const answer = await answersOf(serve, text)
      expect(answer).toMatch(/^HTTP\/1\.1 \d+ /)
      expect(lines(answer)).toEqual(lines(await nodesAnswersOf(serve, text)))
    }
  })

  it.each([[['x-a', 'b\r\nx-c: d']], [['x-a', 'b\0']], [['x-a\r\nx-c', 'd']], [['x a', 'b']], [['x-a', '\u0100']]])(
    'and has no invented header lines: %j',
    async (headers) => {
      const thrown: unknown[] = []
      const serve: Serve = (_request, response) => {
        try {
          response.writeHead(200, headers)
        } catch (error) {
          thrown.push(error)
        }
        response.end('ab')
      }
      expect(await answersOf(serve, '')).not.toMatch(/x-c|x a|\0/)
      expect(thrown).toHaveLength(1)
    },
  )
})

describe('an answer to HTTP/1.0', () => {
  const old = (...lines: string[]): string => ['GET / HTTP/1.0', ...lines, '', ''].join('\r\n')
  const answerTo = async (text: string, serve: Serve): Promise<string> => {
    const client = rawConnect((await startListener(sockets, serve)).url, text)
    await client.ended
    return client.text()
  }

  it('has a length where it is there in one piece, and ends the connection unless that is to stay', async () => {
    const whole: Serve = (_request, response) => void response.end('ab')
    expect(await answerTo(old() + get('/2'), whole)).toMatch(
      /^HTTP\/1\.1 200 OK\r\n(?!.*Transfer-Encoding)[^]*Connection: close\r\nContent-Length: 2\r\n\r\nab$/,
    )
    const kept = await answerTo(old('Connection: Keep-Alive') + old(), whole)
    expect(kept.match(/Connection: \S+|ab/g)).toEqual(['Connection: keep-alive', 'ab', 'Connection: close', 'ab'])
  })

  it('has no chunks: one without a length ends with the connection, whatever that was to do', async () => {
    const pieces: Serve = (_request, response) => {
      response.write('a')
      response.end('b')
    }
    const text = await answerTo(old('Connection: keep-alive') + get('/2'), pieces)
    expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*Connection: close\r\n\r\nab$/)
    expect(text).not.toMatch(/chunked|Content-Length/i)
  })

  it('is the only one: only HTTP/1.1 has interim answers', async () => {
    const hinting: Serve = (_request, response) => {
      response.writeContinue()
      response.writeInterim(103, ['link', '</a>'])
      response.end('ab')
    }
    expect((await answerTo(old(), hinting)).match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200'])
    expect(await answerTo(LAST, hinting)).toMatch(
      /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 103 Early Hints\r\nlink: <\/a>\r\n\r\nHTTP\/1\.1 200 OK\r\n/,
    )
  })
})

describe('an expectation', () => {
  const asking = (text: string, expect = '100-continue'): string =>
    text.replace('Host: h', `Host: h\r\nExpect: ${expect}`)

  it('is met when the body is wanted', async () => {
    const listener = await startListener(sockets, (request, response) => {
      expect(request.expectsContinue).toBe(request.url === '/')
      if (request.url !== '/last') response.writeContinue()
      echo(request, response)
    })
    const [head = '', body = ''] = asking(post('/', 'body')).split(/(?<=\r\n\r\n)/)
    const client = rawConnect(listener.url, head)
    expect(await client.until(/\r\n\r\n/)).toBe('HTTP/1.1 100 Continue\r\n\r\n')
    client.socket.write(body + LAST)
    await client.ended
    expect(client.text().match(/HTTP\/1\.1 \d+|\[\w*\]/g)).toEqual([
      'HTTP/1.1 100',
      'HTTP/1.1 200',
      '[body]',
      'HTTP/1.1 200',
      '[]',
    ])
  })

  it('that is not met closes the connection: the body may or may not follow', async () => {
    const listener = await startListener(sockets, (_request, response) => void response.writeHead(401).end('no'))
    const client = rawConnect(listener.url, asking(post('/', 'body')) + get('/2'))
    await client.ended
    expect(client.text()).toMatch(/^HTTP\/1\.1 401 [^]*connection: close[^]*no\r\n0\r\n\r\n$/i)
    expect(listener.served).toEqual(['POST /'])
  })

  it('that is unknown is 417, where HTTP/1.1 is spoken', async () => {
    const listener = await startListener(sockets, say)
    const client = rawConnect(listener.url, get('/1') + asking(get('/2'), 'a') + get('/3'))
    await client.ended
    expect(client.text().match(/HTTP\/1\.1 \d+|expectation_failed/g)).toEqual([
      'HTTP/1.1 200',
      'HTTP/1.1 417',
      'expectation_failed',
    ])
    expect(listener.served).toEqual(['GET /1'])
    const old = rawConnect(listener.url, asking(get('/'), 'a').replace('1.1', '1.0'))
    await old.ended
    expect(old.text()).toMatch(/^HTTP\/1\.1 200 /)
  })
})

describe('an answer that is not as long as it says', () => {
  it.each<[string, Serve]>([
    ['more at once', (_request, response) => void response.writeHead(200, ['content-length', '2']).end('abc')],
    [
      'more in pieces',
      (_request, response) => {
        response.writeHead(200, ['content-length', '2']).write('a')
        response.write('b')
        response.write('HTTP/1.1 200 OK')
        response.end()
      },
    ],
    ['less', (_request, response) => void response.writeHead(200, ['content-length', '2']).end('a')],
    ['nothing', (_request, response) => void response.writeHead(200, ['content-length', '2']).end()],
  ])('ends the connection: %s', async (_what, serve) => {
    const text = await answersOf(serve, get('/1'))
    expect(text.match(/HTTP/g)?.length ?? 0).toBeLessThan(2)
    expect(text).not.toMatch(/\r\n\r\n.{3}/)
  })
})

/** Legal, and not plain. */
const STRANGE = 'PROPFIND /strange HTTP/1.1\r\nHost: h\r\nX: a\r\nx: b\r\n\r\n'
const say: Serve = (request, response) => void response.end(`[${request.method} ${request.url}]`)
const said = (text: string): string[] => text.match(/\[[^\]]*\]/g) ?? []

/** A listener that answers at once, but for `/slow`: those answers are left to the test. */
async function startHolding() {
  const open: ClientResponse[] = []
  const holding: Serve = (request, response) => {
    if (request.url === '/slow') open.push(response)
    else say(request, response)
  }
  return { open, listener: await startListener(sockets, holding) }
}

describe('a request that is not plain', () => {
  it('is read wherever it is cut', async () => {
    const text = get('/1') + STRANGE + post('/2', 'x') + STRANGE
    for (let at = 1; at < text.length; at += 7) {
      const listener = await startListener(sockets, say)
      const client = rawConnect(listener.url, text.slice(0, at))
      await once(client.socket, 'connect')
      await new Promise((resolve) => setImmediate(resolve))
      client.socket.write(text.slice(at))
      await client.until(/(?:\[[^\]]*\][^[]*){4}/)
      expect(said(client.text())).toEqual(['[GET /1]', '[PROPFIND /strange]', '[POST /2]', '[PROPFIND /strange]'])
      client.socket.destroy()
    }
  })

  it('waits for the answers before it', async () => {
    const { listener, open } = await startHolding()
    const client = rawConnect(listener.url, get('/slow') + STRANGE)
    await vi.waitFor(() => expect(open).toHaveLength(1))
    for (let index = 0; index < 10; index++) client.socket.write(get(`/${index}`))
    open[0]?.end('[slow]')
    await client.until(/\[GET \/9\]/)
    expect(said(client.text()).slice(0, 3)).toEqual(['[slow]', '[PROPFIND /strange]', '[GET /0]'])
    expect(listener.served).toHaveLength(12)
  })

  it('is answered although its client has ended its side', async () => {
    const { listener, open } = await startHolding()
    for (const text of [STRANGE, get('/1') + STRANGE]) {
      const client = rawConnect(listener.url, '')
      client.socket.end(text)
      await client.ended
      expect(said(client.text()).at(-1)).toBe('[PROPFIND /strange]')
    }
    // Its end was seen while it waited.
    const client = connect({ port: Number(new URL(listener.url).port), host: '127.0.0.1', allowHalfOpen: true })
    let answer = ''
    client.on('data', (data: Buffer) => (answer += data.toString())).end(get('/slow') + STRANGE)
    await vi.waitFor(() => expect(open).toHaveLength(1))
    setTimeout(() => open[0]?.end('[slow]'), 50)
    await once(client, 'end')
    expect(said(answer)).toEqual(['[slow]', '[PROPFIND /strange]'])
    client.destroy()
  })

  it('breaks off with its client’s side, although that was seen while it waited', async () => {
    const open: ClientResponse[] = []
    const listener = await startListener(sockets, (_request, response) => void open.push(response))
    const client = connect({ port: Number(new URL(listener.url).port), host: '127.0.0.1', allowHalfOpen: true })
    let answer = ''
    client.on('data', (data: Buffer) => (answer += data.toString()))
    client.end(`${get('/slow')}${STRANGE.replace('X: a', 'Content-Length: 5')}ab`)
    await vi.waitFor(() => expect(open).toHaveLength(1))
    const { socket } = open[0] as ClientResponse
    await vi.waitFor(() => expect(socket?.readableEnded).toBe(true))
    open[0]?.end('[slow]')
    await vi.waitFor(() => expect(answer).toMatch(/\[slow\]HTTP\/1\.1 400 [^]*bad_request$/))
    client.destroy()
  })

  it('may be encrypted', async () => {
    const tls = { current: () => TLS.server, onChange: () => () => {} }
    const listener = await startListener(sockets, say, { tls })
    const port = Number(new URL(listener.url).port)
    const client = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false })
    let text = ''
    client.on('data', (data: Buffer) => (text += data.toString())).write(get('/1') + STRANGE + get('/2'))
    await vi.waitFor(() => expect(said(text)).toEqual(['[GET /1]', '[PROPFIND /strange]', '[GET /2]']))
    client.write(post('/3', 'x'.repeat(100_000)))
    await vi.waitFor(() => expect(said(text)).toHaveLength(4))
    client.destroy()
  })

  it('may be one inside the process', async () => {
    const listener = await startListener(sockets, say, { address: IN_PROCESS })
    const client = listener.connect()
    let text = ''
    client.on('data', (data: Buffer) => (text += data.toString())).write(get('/1') + STRANGE + get('/2'))
    await vi.waitFor(() => expect(said(text)).toEqual(['[GET /1]', '[PROPFIND /strange]', '[GET /2]']))
    client.destroy()
  })
})

describe('a client that takes its time', () => {
  it('gets 408 for a head that does not come, or not to its end', async () => {
    const listener = await startListener(sockets, say, { deadlines: { headersMs: 100 } })
    for (const text of ['', 'GET / HT', `${get('/1')}GET`]) {
      const client = rawConnect(listener.url, text)
      await client.ended
      expect(client.text()).toMatch(/HTTP\/1\.1 408 [^[]*request_timeout$/)
    }
  })

  it('does not get it while it has asked for nothing more', async () => {
    const listener = await startListener(sockets, say, {
      deadlines: { headersMs: 5000, keepAliveMs: 1 },
    })
    const client = rawConnect(listener.url, get('/1'))
    await client.ended
    expect(client.text()).not.toContain('408')
  })
})

describe('a connection whose next request has to wait', () => {
  const stuck = 'GET /slow HTTP/1.1\r\nHost: h\r\n\r\n'

  it('is read no further when much of it waits, and ends when that takes too long', async () => {
    const listener = await startListener(sockets, () => {})
    const client = rawConnect(listener.url, stuck + STRANGE)
    await vi.waitFor(() => expect(listener.served).toHaveLength(1))
    // More than the buffers of both ends hold.
    for (let sent = 0; sent < 40; sent++) client.socket.write(Buffer.alloc(1_000_000, 'x'))
    let isEnded = false
    void client.ended.then(() => (isEnded = true))
    await passTime(listener.clock, 4000, () => isEnded)
    expect(listener.metrics.value('extauth_connections_cut_total', 'pipelining')).toBe(1)
  })
})

it('a response after a rejection has no effect', async () => {
  const open: ClientResponse[] = []
  const listener = await startListener(sockets, (_request, response) => void open.push(response))
  const client = rawConnect(listener.url, 'POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na')
  await vi.waitFor(() => expect(open).toHaveLength(1))
  client.socket.write('nonsense\r\n')
  await client.until(/400 [^]*bad_request$/)
  const errors: Error[] = []
  open[0]?.socket?.on('error', (error) => errors.push(error))
  open[0]?.end('late')
  client.socket.write(get('/2'))
  await client.ended
  expect(client.text()).not.toContain('late')
  expect([errors, listener.served]).toEqual([[], ['POST /']])
})
