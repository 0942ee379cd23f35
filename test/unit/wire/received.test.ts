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
      { onHead: () => false, onBody: (data) => void pieces.push(data.toString('latin1')), onEnd: () => true },
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
    const sink = { onHead: () => false, onBody: (data: Buffer) => void pieces.push(data.toString()), onEnd: () => true }
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

describe('a request that may be read in two ways is refused', () => {
  it.each([
    ['a length and chunks', post('Content-Length: 3', TE)],
    ['chunks and a length of 0', post(TE, 'Content-Length: 0')],
    ['two lengths', post('Content-Length: 1', 'Content-Length: 2')],
    ['the same length twice', post('Content-Length: 2', 'content-length: 2')],
    ...['', '2, 2', '+2', '-2', '0x2', '2.0', '2 2', '2\xb2', '9'.repeat(16), '0'.repeat(17), '2a', '2\t'].map(
      (length) => [`the length ${JSON.stringify(length)}`, post(`Content-Length: ${length}`)] as const,
    ),
    ...['', 'gzip', 'gzip, chunked', 'chunked, chunked', 'chunked;q=1', 'identity', '\x0bchunked', 'chunked\t'].map(
      (coding) => [`the coding ${JSON.stringify(coding)}`, post(`Transfer-Encoding: ${coding}`)] as const,
    ),
    ['chunked twice', post(TE, TE)],
    ['chunks in HTTP/1.0', head('POST / HTTP/1.0', 'Host: h', TE)],
    ['a bare LF', 'GET / HTTP/1.1\nHost: h\r\n\r\n'],
    ['a bare CR', get('A: b\rC: d')],
    ['a bare CR before it', `\rGET / HTTP/1.1\r\n\r\n`],
    ['a bare LF before it', `\n${get()}`],
    ['a NUL', get('A: b\0')],
    ['a folded line', get('A: b', ' c')],
    ['a blank before the colon', get('A : b')],
    ['a tab behind a host', head('GET / HTTP/1.1', 'Host: h\t')],
    ['a tab behind what is said of the connection', get('Connection: close\t')],
    ['no name', get(': b')],
    ['no colon', get('A')],
    ['a name that is no token', get('A(b): c')],
    ['a blank before the line', ` ${get()}`],
    ['a blank behind the line', head('GET / HTTP/1.1 ', 'Host: h')],
    ['a tab', head('GET\t/ HTTP/1.1', 'Host: h')],
    ['no version', head('GET /', 'Host: h')],
    ['HTTP/1.2', head('GET / HTTP/1.2', 'Host: h')],
    ['HTTP/1.10', head('GET / HTTP/1.10', 'Host: h')],
    ['RTSP', head('GET / RTSP/1.1', 'Host: h')],
    ['a method that HTTP does not have', head('SOURCE / HTTP/1.1', 'Host: h')],
    ['a method in lower case', head('get / HTTP/1.1', 'Host: h')],
    ['a byte beyond ASCII in the target', head('GET /\xe9 HTTP/1.1', 'Host: h')],
    ['no target', head('GET  HTTP/1.1', 'Host: h')],
    ['a target in no form', head('GET h:1 HTTP/1.1', 'Host: h')],
    ['absolute-form of another scheme', head('GET ftp://h/ HTTP/1.1', 'Host: h')],
    ['absolute-form with user information', head('GET http://u@h/ HTTP/1.1', 'Host: h')],
    ['absolute-form with an invalid host', head('GET http://h>/ HTTP/1.1', 'Host: h')],
    ['a target that only begins like an asterisk', head('OPTIONS *a HTTP/1.1', 'Host: h')],
  ] as const)('%s', (_name, text) => {
    expect(read(get() + text + NEXT)).toMatchObject({ whole: [{ head: { target: '/' } }], end: 'refused' })
  })

  it.each([
    ['a length and chunks', post('Content-Length: 3', TE)],
    ['chunks in HTTP/1.0', head('POST / HTTP/1.0', 'Host: h', TE)],
  ])('%s, also before a body that is one', (_name, text) => {
    for (const body of ['0\r\n\r\n', '1\r\na\r\n0\r\n\r\n'])
      expect(read(text + body)).toMatchObject({ whole: [], end: 'refused' })
  })

  it('a head that is too large, before it is whole', () => {
    const ofSize = (bytes: number): string => get(`A: ${'b'.repeat(bytes - get('A: ').length + 4)}`)
    expect(read(ofSize(MAX_SECTION_BYTES))).toMatchObject({ end: 'open', whole: [{ body: Buffer.alloc(0) }] })
    for (const text of [ofSize(MAX_SECTION_BYTES + 1), get('A: b\r\n'.repeat(9000))])
      expect(read(text)).toMatchObject({ whole: [], end: 'too-large' })
    expect(readRequests([bytesOf(get())], get().length - 5)).toMatchObject({ whole: [], end: 'too-large' })
    expect(readRequests([bytesOf(get())], get().length - 4)).toMatchObject({ whole: [{}], end: 'open' })
  })

  it('what can become no head, before it ends', () => {
    for (const text of [
      '\x16\x03\x01',
      'GEX',
      'get',
      'GET / HTTP/1.1\n',
      'GET /\r\n',
      'GET / HTTP/1.1\r\nA: \0',
      '\n',
      '\rG',
    ])
      expect(read(text).end).toBe('refused')
    for (const text of ['G', 'GET', 'GET /', 'GET / HTTP/1.1\r', 'GET / HTTP/1.1\r\nA', '\r', '\r\n'])
      expect(read(text).end).toBe('open')
  })
})

describe('what is legal, and not plain', () => {
  const headOf = (text: string) => read(text + NEXT).whole[0]?.head

  it.each([
    ['another method', head('PROPFIND /a HTTP/1.1', 'Host: h'), { method: 'PROPFIND', target: '/a' }],
    ['absolute-form', head('GET http://h/a?b HTTP/1.1', 'Host: h'), { target: 'http://h/a?b' }],
    ['asterisk-form', head('OPTIONS * HTTP/1.1', 'Host: h'), { target: '*' }],
    ['a fragment', head('GET /a#b HTTP/1.1', 'Host: h'), { target: '/a#b' }],
    ['several blanks', head('GET  /a   HTTP/1.1', 'Host: h'), { target: '/a' }],
    ['empty lines before it', `\r\n\r\n${head('GET /a HTTP/1.1', 'Host: h')}`, { target: '/a' }],
    ['a tab behind a value', get('A: b \t '), { lines: ['Host', 'h', 'A', 'b'] }],
    ['many lines', get('A: b\r\n'.repeat(500).slice(0, -2)), { keeps: true }],
    ['the longest length', post('Content-Length: 9007199254740991'), undefined],
    ['an expectation', post('Expect: 100-Continue', 'Content-Length: 0'), { expects: undefined }],
    ['an unknown expectation', get('Expect: a'), { expects: 'other' }],
    ['two expectations', get('Expect: 100-continue', 'Expect: a'), { expects: 'other' }],
    ['an upgrade that does not say so', get('Upgrade: h2c'), { upgrade: undefined }],
    ['an upgrade with a body', post('Connection: upgrade', 'Upgrade: a', TE) + '0\r\n\r\n', { upgrade: undefined }],
    ...(
      [
        ['', true],
        ['upgrade', true],
        ['x', true],
        ['keep-alive, x-a', true],
        ['close, keep-alive', false],
        ['x-a,\tCLOSE', false],
      ] as const
    ).map(
      ([said, keeps]) => [`the connection ${JSON.stringify(said)}`, get(`Connection: ${said}`), { keeps }] as const,
    ),
  ] as const)('%s', (_name, text, expected) => {
    if (expected === undefined) expect(read(text)).toMatchObject({ end: 'open', whole: [] })
    else if ('keeps' in expected && !expected.keeps) expect(read(text).whole[0]?.head).toMatchObject(expected)
    else expect(headOf(text)).toMatchObject(expected)
  })

  it('is HTTP/1.0, which stays only when it asks for that, and expects nothing', () => {
    expect(read(head('GET / HTTP/1.0')).whole[0]?.head).toMatchObject({ isOld: true, keeps: false })
    expect(read(head('GET / HTTP/1.0', 'Connection: close, keep-alive')).whole[0]?.head).toMatchObject({ keeps: false })
    const lines = ['Connection: Keep-Alive, Upgrade', 'Upgrade: a', 'Expect: a']
    expect(headOf(head('GET / HTTP/1.0', ...lines))).toMatchObject({
      keeps: true,
      upgrade: undefined,
      expects: undefined,
    })
  })

  it('has names twice: lists are joined, of other fields the first line counts', () => {
    const lines = ['X-A: b', 'x-a: c', 'Host: i', 'Cookie: a=b', 'cookie: c=d', 'Authorization: e', 'Authorization: f']
    const got = headOf(get(...lines, 'Set-Cookie: g', 'Set-Cookie: h'))
    expect({ ...got?.fields }).toEqual({
      host: 'h',
      'x-a': 'b, c',
      cookie: 'a=b; c=d',
      authorization: 'e',
      'set-cookie': ['g', 'h'],
    })
    expect(got?.lines.filter((_text, at) => at % 2 === 1)).toEqual([
      'h',
      'b',
      'c',
      'i',
      'a=b',
      'c=d',
      'e',
      'f',
      'g',
      'h',
    ])
  })

  it('is an expectation of 100 where there is a body', () => {
    expect(read(`${post('Expect: 100-Continue', 'Content-Length: 2')}ab`).whole[0]?.head.expects).toBe('continue')
  })

  it('is an upgrade, behind which nothing is read', () => {
    const text = get('Connection: keep-alive, Upgrade', 'Upgrade: websocket')
    expect(read(`${text}bytes`)).toMatchObject({
      whole: [{ head: { upgrade: 'websocket' } }],
      end: 'upgrade',
      unread: bytesOf('bytes'),
    })
  })

  it('is CONNECT, behind which nothing is read either', () => {
    const text = head('CONNECT h:1 HTTP/1.1', 'Host: h')
    expect(read(`${text}bytes`)).toMatchObject({ whole: [{ head: { method: 'CONNECT', keeps: false } }], end: 'open' })
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
    ['many trailers', `0\r\n${'a: b\r\n'.repeat(300)}\r\n`],
  ])('%s', (_name, chunks) => {
    expect(read(post(TE) + chunks)).toMatchObject({ whole: [], end: 'refused' })
  })

  it('trailers without end', () => {
    expect(read(`${post(TE)}0\r\n${'a: b\r\n'.repeat(3000)}\r\n`)).toMatchObject({ whole: [], end: 'too-large' })
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
