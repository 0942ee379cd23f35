import { createServer } from 'node:http'
import { duplexPair, Readable } from 'node:stream'
import { afterAll, describe, expect, it } from 'vitest'
import { type WireRequest, writeRequest } from '../../../src/wire/request-head.ts'
import { WireError } from '../../../src/wire/wire-error.ts'
import { Chance } from '../../support/wire/random.ts'

const write = (request: Partial<WireRequest>): string => {
  const written = writeRequest(
    { method: 'GET', path: '/', headers: [], body: null, ...request },
    { authority: 'backend:81' },
  )
  return written.head
}
const codeOf = (request: Partial<WireRequest>): string => {
  try {
    write(request)
    return 'written'
  } catch (error) {
    return error instanceof WireError ? error.code : String(error)
  }
}

describe('the head of a request', () => {
  const stream = Readable.from([])
  const KEPT = 'host: backend:81\r\nconnection: keep-alive\r\n'
  const CLOSED = 'host: backend:81\r\nconnection: close\r\n'
  it.each([
    ['without a body', {}, `GET / HTTP/1.1\r\n${KEPT}\r\n`],
    ['where one is expected', { method: 'POST' }, `POST / HTTP/1.1\r\n${KEPT}content-length: 0\r\n\r\n`],
    [
      'with bytes',
      { method: 'PUT', path: '/a?b=%2F', body: Buffer.from('abc') },
      `PUT /a?b=%2F HTTP/1.1\r\n${KEPT}content-length: 3\r\n\r\n`,
    ],
    [
      'with bytes of the length that it says',
      { method: 'POST', body: Buffer.from('abc'), headers: ['content-length', '3'] },
      `POST / HTTP/1.1\r\n${KEPT}content-length: 3\r\n\r\n`,
    ],
    [
      'with a stream of a length',
      { method: 'POST', body: stream, headers: ['Content-Length', '3', 'A', 'b'] },
      `POST / HTTP/1.1\r\n${KEPT}A: b\r\ncontent-length: 3\r\n\r\n`,
    ],
    [
      'with a stream of none',
      { method: 'POST', body: stream },
      `POST / HTTP/1.1\r\n${KEPT}transfer-encoding: chunked\r\n\r\n`,
    ],
    ['whose body few servers read', { body: Buffer.from('a') }, `GET / HTTP/1.1\r\n${CLOSED}content-length: 1\r\n\r\n`],
    ['after whose answer a body may come', { method: 'HEAD' }, `HEAD / HTTP/1.1\r\n${CLOSED}\r\n`],
    [
      'that asks for another protocol',
      { upgrade: 'websocket' },
      'GET / HTTP/1.1\r\nhost: backend:81\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n',
    ],
    [
      'with a host of its own',
      { headers: ['host', 'other'] },
      'GET / HTTP/1.1\r\nconnection: keep-alive\r\nhost: other\r\n\r\n',
    ],
  ] as const)('%s', (_name, request, text) => {
    expect(write(request)).toBe(text)
  })

  it.each([
    ['a method that is none', { method: 'GE T' }],
    ['a method with a line end', { method: 'GET\r\n' }],
    ['CONNECT', { method: 'CONNECT' }],
    ['an absolute target', { path: 'http://other/' }],
    ['an empty target', { path: '' }],
    ['a blank in the target', { path: '/a b' }],
    ['a line end in the target', { path: '/a\r\nb' }],
    ['a fragment', { path: '/a#b' }],
    ['a target beyond ASCII', { path: '/\xe9' }],
    ['a name that is no token', { headers: ['a b', 'c'] }],
    ['an empty name', { headers: ['', 'c'] }],
    ['a line end in a value', { headers: ['a', 'b\r\nc: d'] }],
    ['an LF in a value', { headers: ['a', 'b\n'] }],
    ['what becomes an LF on the wire', { headers: ['a', 'b\u010ac: d'] }],
    ['a NUL in a value', { headers: ['a', 'b\0'] }],
    ['a name without a value', { headers: ['a'] }],
    ['two hosts', { headers: ['host', 'a', 'Host', 'b'] }],
    ['a line end in the protocol', { upgrade: 'a\r\nb: c' }],
    ['two lengths', { method: 'POST', body: stream, headers: ['content-length', '3', 'content-length', '3'] }],
    ['a length that is none', { method: 'POST', body: stream, headers: ['content-length', '3, 3'] }],
    ['another length than the body', { method: 'POST', body: Buffer.from('ab'), headers: ['content-length', '3'] }],
    ['a length without a body', { method: 'POST', headers: ['content-length', '3'] }],
    ...['Transfer-Encoding', 'connection', 'keep-alive', 'upgrade', 'te', 'trailer', 'expect'].map(
      (name) => [`${name} among the headers`, { headers: [name, 'x'] }] as const,
    ),
  ] as const)('with %s is not written', (_name, request) => {
    expect(codeOf(request)).toBe('WIRE_REQUEST')
  })
})

describe('what is written', () => {
  const seen: string[] = []
  const server = createServer({ insecureHTTPParser: false }, (request, response) => {
    seen.push(JSON.stringify([request.method, request.url, request.rawHeaders]))
    response.end()
  })
  server.on('clientError', (error) => void seen.push(error.message))
  afterAll(() => server.close())

  const NAMES = ['a', 'x-b', 'content-length', 'Host', 'transfer-encoding', 'x\r\ny', 'a:b', ' a', '']
  const SPICE = [
    '',
    'v',
    ' v ',
    '\t',
    '\r',
    '\n',
    '\r\nx: y',
    '\0',
    '\u010a',
    '\x80',
    '3',
    '\r\n\r\nGET /x HTTP/1.1\r\n',
  ]

  it('is one request, and the same, to Node', async () => {
    const chance = new Chance(4)
    let written = 0
    for (let round = 0; round < 2000; round++) {
      const headers: string[] = []
      for (let count = chance.below(4); count > 0; count--) headers.push(chance.one(NAMES), chance.one(SPICE))
      const method = chance.one(['GET', 'GET', 'DELETE', 'GET /x HTTP/1.1\r\n', 'M-SEARCH', ''])
      const path = `/${chance.one(['', '', 'a', '?', '%0a', ' ', '\r\n', '#', '\x7f', '\\', '"'])}`
      if (codeOf({ method, path, headers }) !== 'written') continue
      written++
      const [client, socket] = duplexPair()
      server.emit('connection', socket)
      client.resume()
      client.end(Buffer.from(write({ method, path, headers: ['x-first', '1', ...headers] }), 'latin1'))
      await new Promise((resolve) => client.once('close', resolve))
      const [got = '', ...others] = seen.splice(0)
      expect(others).toEqual([])
      const [gotMethod, gotPath, gotHeaders] = JSON.parse(got) as [string, string, string[]]
      expect([gotMethod, gotPath]).toEqual([method, path])
      const sent = headers.map((text, index) => (index % 2 === 0 ? text : text.replace(/^[ \t]+|[ \t]+$/g, '')))
      const hasHost = sent.some((text, index) => index % 2 === 0 && text === 'Host')
      expect(gotHeaders).toEqual([
        ...(hasHost ? [] : ['host', 'backend:81']),
        'connection',
        'keep-alive',
        'x-first',
        '1',
        ...sent,
      ])
    }
    expect(written).toBeGreaterThan(100)
  })
})
