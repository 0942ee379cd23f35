import { describe, expect, it } from 'vitest'
import { RequestReader } from '../../../src/wire/request-reader.ts'
import { MAX_SECTION_BYTES } from '../../../src/wire/section-reader.ts'
import { type ReadRequests, readRequests } from '../../support/wire/read-requests.ts'

const bytesOf = (text: string): Buffer => Buffer.from(text, 'latin1')
/** In one piece, byte by byte, and cut in two anywhere: the same each time. */
function read(text: string): ReadRequests {
  const bytes = bytesOf(text)
  const whole = readRequests([bytes])
  expect(readRequests(text.split('').map(bytesOf))).toEqual(whole)
  return whole
}
const head = (line: string, ...lines: string[]): string => [line, ...lines, '', ''].join('\r\n')
const get = (...lines: string[]): string => head('GET / HTTP/1.1', 'Host: h', ...lines)
const post = (...lines: string[]): string => head('POST / HTTP/1.1', 'Host: h', ...lines)
const TE = 'Transfer-Encoding: chunked'
const NEXT = get()

describe('where a request ends', () => {
  it.each([
    ['no body', get(), ''],
    ['no length', post(), ''],
    ['a length', post('Content-Length: 2') + 'ab', 'ab'],
    ['a length of 0', post('Content-Length: 0'), ''],
    ['a length of GET', get('Content-Length: 2') + 'ab', 'ab'],
    ['leading zeros', post('content-length:\t0002 ') + 'ab', 'ab'],
    ['a body like a head', post(`Content-Length: ${NEXT.length}`) + NEXT, NEXT],
    ['chunks', post(TE) + '2\r\nab\r\n1;x="y"\r\nc\r\n0\r\n\r\n', 'abc'],
    ['chunks in capitals', post('TRANSFER-ENCODING: Chunked') + '2\r\nab\r\n0;a\r\n\r\n', 'ab'],
    ['trailers', post(TE) + '2\r\nab\r\n0\r\nX-A: b\r\nHost: i\r\n\r\n', 'ab'],
    ['no chunk', post(TE) + '0\r\n\r\n', ''],
  ])('is said by %s', (_name, text, body) => {
    const { whole, end } = read(text + NEXT)
    expect(whole.map((request) => request.body.toString('latin1'))).toEqual([body, ''])
    expect(end).toBe('open')
  })

  it('is the end of all, where the connection does not stay', () => {
    const text = post('Content-Length: 2', 'Connection: close') + 'ab'
    expect(read(text + NEXT)).toMatchObject({ whole: [{ head: { keeps: false } }], end: 'open' })
    expect(read(`${text}nonsense\r\n\r\n`)).toMatchObject({ whole: [{}], end: 'open' })
  })

  it('is not there while bytes are missing', () => {
    for (const text of [post('Content-Length: 3') + 'ab', post(TE) + '2\r\nab\r\n0\r\nA: b\r\n', 'GET / HTTP/1.1\r\n'])
      expect(read(text)).toMatchObject({ whole: [], end: 'open' })
  })
})

describe('chunks', () => {
  const chunk = (text: string, extension = ''): string => `${text.length.toString(16)}${extension}\r\n${text}\r\n`
  const piecesOf = (text: string): string[] => {
    const pieces: string[] = []
    new RequestReader(
      { onHead: () => {}, onBody: (data) => void pieces.push(data.toString('latin1')), onEnd: () => true },
      MAX_SECTION_BYTES,
    ).read(bytesOf(text))
    return pieces
  }

  it('that are small and come together are one piece of the body, large ones are as they are', () => {
    const large = 'x'.repeat(4096)
    expect(
      piecesOf(
        post(TE) +
          'abc'
            .split('')
            .map((text) => chunk(text))
            .join(''),
      ),
    ).toEqual(['abc'])
    const mixed = [chunk('a'), chunk('b'), chunk(large), chunk('c'), chunk('d'), '0\r\n\r\n']
    expect(piecesOf(post(TE) + mixed.join(''))).toEqual(['ab', large, 'cd'])
  })

  it('that were good go before an error behind them', () => {
    const pieces: string[] = []
    const sink = { onHead: () => {}, onBody: (data: Buffer) => void pieces.push(data.toString()), onEnd: () => true }
    const reader = new RequestReader(sink, MAX_SECTION_BYTES)
    expect(() => reader.read(bytesOf(`${post(TE)}${chunk('a')}${chunk('b')}zz\r\n`))).toThrow('a chunk without a size')
    expect(pieces).toEqual(['ab'])
  })

  it('have no more extensions together than a head may have bytes', () => {
    const extended = chunk('a', `;a=${'x'.repeat(200)}`)
    expect(read(post(TE) + extended.repeat(20) + '0\r\n\r\n')).toMatchObject({ whole: [{}], end: 'open' })
    expect(read(post(TE) + extended.repeat(100) + '0\r\n\r\n')).toMatchObject({ whole: [], end: 'refused' })
  })
})

describe('a request that may be read in two ways is given back whole', () => {
  it.each([
    ['a length and chunks', post('Content-Length: 3', TE)],
    ['chunks and a length of 0', post(TE, 'Content-Length: 0')],
    ['two lengths', post('Content-Length: 1', 'Content-Length: 2')],
    ['the same length twice', post('Content-Length: 2', 'content-length: 2')],
    ...['', '2, 2', '+2', '-2', '0x2', '2.0', '2 2', '2\xb2', '9'.repeat(16), '2a'].map(
      (length) => [`the length ${JSON.stringify(length)}`, post(`Content-Length: ${length}`)] as const,
    ),
    ...['', 'gzip', 'gzip, chunked', 'chunked, chunked', 'chunked;q=1', 'identity', '\x0bchunked'].map(
      (coding) => [`the coding ${JSON.stringify(coding)}`, post(`Transfer-Encoding: ${coding}`)] as const,
    ),
    ['chunked twice', post(TE, TE)],
    ['two hosts', get('Host: i')],
    ['any name twice', get('X-A: b', 'x-a: b')],
    ['a bare LF', 'GET / HTTP/1.1\nHost: h\r\n\r\n'],
    ['a bare CR', get('A: b\rC: d')],
    ['a NUL', get('A: b\0')],
    ['a folded line', get('A: b', ' c')],
    ['a blank before the colon', get('A : b')],
    ['a tab behind a value', get('A: b\t')],
    ['no name', get(': b')],
    ['no colon', get('A')],
    ['a name that is no token', get('A(b): c')],
    ['too many lines', get(...Array.from({ length: 257 }, (_, index) => `A${index}: b`))],
    ['an empty line before it', `\r\n${get()}`],
    ['two blanks', head('GET  / HTTP/1.1', 'Host: h')],
    ['a blank behind the line', head('GET / HTTP/1.1 ', 'Host: h')],
    ['a tab', head('GET\t/ HTTP/1.1', 'Host: h')],
    ['no version', head('GET /', 'Host: h')],
    ['HTTP/1.0', head('GET / HTTP/1.0', 'Host: h')],
    ['HTTP/1.2', head('GET / HTTP/1.2', 'Host: h')],
    ['RTSP', head('GET / RTSP/1.1', 'Host: h')],
    ['another method', head('PROPFIND / HTTP/1.1', 'Host: h')],
    ['a method in lower case', head('get / HTTP/1.1', 'Host: h')],
    ['absolute-form', head('GET http://h/ HTTP/1.1', 'Host: h')],
    ['asterisk-form', head('OPTIONS * HTTP/1.1', 'Host: h')],
    ['a fragment', head('GET /#a HTTP/1.1', 'Host: h')],
    ['a byte beyond ASCII in the target', head('GET /\xe9 HTTP/1.1', 'Host: h')],
    ['no target', head('GET  HTTP/1.1', 'Host: h')],
    ['an expectation', post('Content-Length: 2', 'Expect: 100-continue')],
    ['a cookie that is set', get('Set-Cookie: a')],
    ['what some take for `Connection`', get('Proxy-Connection: close')],
    ...['', 'upgrade', 'close, keep-alive', 'keep-alive, x-a', 'x'].map(
      (said) => [`the connection ${JSON.stringify(said)}`, get(`Connection: ${said}`)] as const,
    ),
  ] as const)('%s', (_name, text) => {
    expect(read(get() + text + NEXT)).toMatchObject({
      whole: [{ head: { target: '/' } }],
      end: 'strange',
      unread: bytesOf(text + NEXT),
    })
  })

  it.each([
    ['CONNECT', head('CONNECT h:1 HTTP/1.1', 'Host: h'), 'connect'],
    ['an upgrade', get('Connection: Upgrade', 'Upgrade: websocket'), 'upgrade'],
    ['an upgrade that does not say so', get('Upgrade: h2c'), 'upgrade'],
  ])('%s asks for another protocol', (_name, text, end) => {
    expect(read(text + 'bytes')).toEqual({ whole: [], end, unread: bytesOf(`${text}bytes`) })
  })

  it('a head that is too large, before it is whole', () => {
    const ofSize = (bytes: number): string => get(`A: ${'b'.repeat(bytes - get('A: ').length + 4)}`)
    expect(read(ofSize(MAX_SECTION_BYTES))).toMatchObject({ end: 'open', whole: [{ body: Buffer.alloc(0) }] })
    for (const text of [ofSize(MAX_SECTION_BYTES + 1), 'x'.repeat(MAX_SECTION_BYTES + 4), get('A: b\r\n'.repeat(9000))])
      expect(read(text)).toMatchObject({ whole: [], end: 'strange', unread: bytesOf(text) })
    expect(readRequests([bytesOf(get())], get().length - 5)).toMatchObject({ whole: [], end: 'strange' })
    expect(readRequests([bytesOf(get())], get().length - 4)).toMatchObject({ whole: [{}], end: 'open' })
  })
})

describe('a body that is none is refused', () => {
  it.each([
    ['no size', '\r\nab\r\n'],
    ['a size with a blank', '2 \r\nab\r\n'],
    ['more data than it says', '2\r\nabc\r\n'],
    ['a bare LF', '2\nab\r\n'],
    ['a length as a trailer', '0\r\nContent-Length: 0\r\n\r\n'],
    ['a folded trailer', '0\r\nA: b\r\n c\r\n\r\n'],
    ['trailers without end', `0\r\n${'a: b\r\n'.repeat(3000)}\r\n`],
  ])('%s', (_name, chunks) => {
    expect(read(post(TE) + chunks)).toMatchObject({ whole: [], end: 'refused' })
  })
})

it('lines are given as they stand, and by name', () => {
  const [request] = read(
    head('DELETE /a?b HTTP/1.1', 'hOsT: h', 'X-B:\t c ', '__proto__: d', 'Connection: Close'),
  ).whole
  expect(request?.head).toMatchObject({ method: 'DELETE', target: '/a?b', body: 0, keeps: false })
  expect(request?.head.lines).toEqual(['hOsT', 'h', 'X-B', 'c', '__proto__', 'd', 'Connection', 'Close'])
  expect(Object.entries(request?.head.fields ?? {})).toEqual([
    ['host', 'h'],
    ['x-b', 'c'],
    ['__proto__', 'd'],
    ['connection', 'Close'],
  ])
})
