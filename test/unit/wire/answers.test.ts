import { describe, expect, it } from 'vitest'
import { MAX_SECTION_BYTES } from '../../../src/wire/section-reader.ts'
import { readAnswer } from '../../support/wire/read-answer.ts'

const read = (text: string, isHead = false) => readAnswer([Buffer.from(text, 'latin1')], isHead)
const byteByByte = (text: string, isHead = false) =>
  readAnswer(
    text.split('').map((character) => Buffer.from(character, 'latin1')),
    isHead,
  )
const both = (text: string, isHead = false) => {
  const whole = read(text, isHead)
  expect(byteByByte(text, isHead)).toEqual(whole)
  return whole
}
const head = (...lines: string[]): string => `HTTP/1.1 ${lines.join('\r\n')}\r\n\r\n`
const MALFORMED = { kind: 'refused', code: 'WIRE_MALFORMED' }
const TOO_LARGE = { kind: 'refused', code: 'WIRE_HEAD_TOO_LARGE' }

describe('where an answer ends', () => {
  const L0 = 'Content-Length: 0'
  const L2 = 'Content-Length: 2'
  const TE = 'Transfer-Encoding: chunked'
  it.each([
    ['a length', head('200 OK', L2) + 'abcd', 'ab', 2, undefined],
    ['no body', head('200 OK', L0) + 'cd', '', 2, undefined],
    ['leading zeros', head('200 OK', 'Content-Length: 0002') + 'abcd', 'ab', 2, undefined],
    ['204', head('204 No Content') + 'cd', '', 2, undefined],
    ['204 with a length of 0', head('204 No Content', L0) + 'cd', '', 2, undefined],
    ['204 with a length', head('204 No Content', L2) + 'cd', '', 2, 0],
    ['204 with chunks', head('204 No Content', TE) + 'cd', '', 2, 0],
    ['304 with a length', head('304 Not Modified', L2) + 'cd', '', 2, 0],
    ['chunks', head('200 OK', TE) + '2\r\nab\r\n0\r\n\r\ncd', 'ab', 2, undefined],
    ['extensions', head('200 OK', TE) + '2;a;b=c;d="e\\"f"\r\nab\r\n0;x\r\n\r\ncd', 'ab', 2, undefined],
    ['trailers', head('200 OK', TE) + '2\r\nab\r\n0\r\nX-A: b\r\nX-C: d\r\n\r\ncd', 'ab', 2, undefined],
    ['the end of the connection', head('200 OK') + 'abcd', 'abcd', 0, 0],
    ['its end in HTTP/1.0', 'HTTP/1.0 200 OK\r\n\r\nabcd', 'abcd', 0, 0],
    ['a length in HTTP/1.0', 'HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nab', 'ab', 0, 0],
    ['close', head('200 OK', L2, 'Connection: a, Close') + 'ab', 'ab', 0, 0],
    ['close in another line', head('200 OK', L2, 'Connection: keep-alive', 'Connection: close') + 'ab', 'ab', 0, 0],
    ['a hint', head('200 OK', L2, 'Keep-Alive: timeout=7, max=9') + 'ab', 'ab', 0, 7000],
    ['a hint of nothing', head('200 OK', L2, 'Keep-Alive: timeout=0') + 'ab', 'ab', 0, 0],
  ])('is said by %s', (_name, text, body, rest, keepMs) => {
    const answer = both(text)
    expect(answer).toMatchObject({ kind: 'whole', body: Buffer.from(body), rest })
    expect(answer).toHaveProperty('keepMs', keepMs)
  })

  it.each([L2, TE])('is the head after HEAD, whatever it says of a body: %s', (line) => {
    expect(both(head('200 OK', line) + 'ab', true)).toMatchObject({ kind: 'whole', body: Buffer.alloc(0), rest: 2 })
  })

  it('comes after interim answers', () => {
    const text = head('100 Continue') + head('103 Early Hints', 'Link: </a>') + head('204 No Content')
    expect(both(text)).toMatchObject({ kind: 'whole', interim: [100, 103] })
  })
})

describe('an answer whose end could be read in two ways', () => {
  const CHUNKS = '2\r\nab\r\n0\r\n\r\n'
  it.each([
    ['a length and chunks', head('200 OK', 'Content-Length: 2', 'Transfer-Encoding: chunked') + CHUNKS],
    ['a length of 0 and chunks', head('200 OK', 'Transfer-Encoding: chunked', 'Content-Length: 0') + CHUNKS],
    ['two lengths', head('200 OK', 'Content-Length: 2', 'Content-Length: 3') + 'abc'],
    ['the same length twice', head('200 OK', 'Content-Length: 2', 'content-length: 2') + 'ab'],
    ['a list of lengths', head('200 OK', 'Content-Length: 2, 2') + 'ab'],
    ...['', '+2', '-2', '0x2', '2.0', '2 2', '2\xb2', '9'.repeat(16), '2a'].map(
      (length) =>
        [`the length ${JSON.stringify(length)}`, head('200 OK', `Content-Length:\t${length}`) + 'ab'] as const,
    ),
    ['chunks in HTTP/1.0', `HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${CHUNKS}`],
    ...['', 'gzip', 'gzip, chunked', 'chunked, chunked', 'chunked;q=1', 'identity', 'x chunked', '\x0bchunked'].map(
      (coding) =>
        [`the coding ${JSON.stringify(coding)}`, head('200 OK', `Transfer-Encoding: ${coding}`) + CHUNKS] as const,
    ),
    ['chunked twice', head('200 OK', 'Transfer-Encoding: chunked', 'Transfer-Encoding: chunked') + CHUNKS],
    ['both after HEAD', head('200 OK', 'Content-Length: 2', 'Transfer-Encoding: chunked'), true],
    ['an interim answer with a length', head('100 Continue', 'Content-Length: 2') + 'ab' + head('204 No Content')],
    ['an interim answer with chunks', head('100 Continue', 'Transfer-Encoding: chunked') + head('204 No Content')],
  ] as const)('is refused: %s', (_name, text, isHead?: boolean) => {
    expect(both(text, isHead === true)).toEqual(MALFORMED)
  })
})

describe('a head', () => {
  it.each([
    ['a bare LF', 'HTTP/1.1 204 No Content\nA: b\r\n\r\n'],
    ['a bare CR', 'HTTP/1.1 204 No Content\r\nA: b\rC: d\r\n\r\n'],
    ['a NUL', head('204 No Content', 'A: b\0')],
    ['a DEL', head('204 No Content', 'A: \x7f')],
    ['a folded line', head('204 No Content', 'A: b', ' c')],
    ['a blank before the colon', head('204 No Content', 'A : b')],
    ['a blank before the name', head('204 No Content', ' A: b')],
    ['a tab behind a value', head('204 No Content', 'A: b\t ')],
    ['no name', head('204 No Content', ': b')],
    ['no colon', head('204 No Content', 'A', 'B: c')],
    ['a name that is no token', head('204 No Content', 'A(b): c')],
    ['a name beyond ASCII', head('204 No Content', 'A\xe9: c')],
    ['another version', 'HTTP/2.0 204 No Content\r\n\r\n'],
    ['HTTP/1.2', 'HTTP/1.2 204 No Content\r\n\r\n'],
    ['another protocol', 'ICY 200 OK\r\n\r\n'],
    ['lower case', 'http/1.1 204 No Content\r\n\r\n'],
    ['two blanks', 'HTTP/1.1  204 No Content\r\n\r\n'],
    ['a tab', 'HTTP/1.1\t204 No Content\r\n\r\n'],
    ['an empty line before it', '\r\nHTTP/1.1 204 No Content\r\n\r\n'],
    ['status 99', head('099 Status')],
    ['status 600', head('600 Status')],
    ['status 20', head('20 Status')],
    ['status 2000', head('2000 Status')],
    ['too many lines', head('204 No Content', ...Array.from({ length: 257 }, (_, index) => `A${index}: b`))],
  ])('with %s is refused', (_name, text) => {
    expect(both(text)).toEqual(MALFORMED)
  })

  it('has no more than 16 KiB', () => {
    const ofSize = (bytes: number): string => {
      const text = head('204 No Content', 'A: b')
      return text.replace('A: b', `A: ${'b'.repeat(bytes - text.length + 5)}`)
    }
    expect(read(ofSize(MAX_SECTION_BYTES))).toMatchObject({ kind: 'whole' })
    expect(both(ofSize(MAX_SECTION_BYTES + 1))).toEqual(TOO_LARGE)
    expect(both(`HTTP/1.1 200 OK\r\n${'a: b\r\n'.repeat(4000)}`)).toEqual(TOO_LARGE)
    expect(both(`HTTP/1.1 200 ${'x'.repeat(MAX_SECTION_BYTES)}`)).toEqual(TOO_LARGE)
  })

  it('keeps lines of one name apart, and names of `Object` are names', () => {
    const answer = read(head('204 No Content', 'Set-Cookie: a', 'set-cookie:\t b ', '__proto__: c', 'constructor: d'))
    const { fields } = (answer as Extract<typeof answer, { kind: 'whole' }>).head
    expect(Object.entries(fields)).toEqual([
      ['set-cookie', ['a', 'b']],
      ['__proto__', 'c'],
      ['constructor', 'd'],
    ])
    expect(fields['toString']).toBeUndefined()
  })
})

describe('chunks', () => {
  it.each([
    ['no size', '\r\nab\r\n'],
    ['an extension without a size', ';a\r\n'],
    ['a size with a sign', '+2\r\nab\r\n'],
    ['a size with a prefix', '0x2\r\nab\r\n'],
    ['a size with a blank', '2 \r\nab\r\n'],
    ['a size of too many digits', '00000000000002\r\nab\r\n'],
    ['a bare LF behind the size', '2\nab\r\n'],
    ['a bare CR behind the size', '2\rab\r\n'],
    ['more data than it says', '2\r\nabc\r\n'],
    ['less data than it says', '3\r\nab\r\n0\r\n\r\n'],
    ['a bare LF behind the data', '2\r\nab\n'],
    ['an extension that is none', '2;\r\nab\r\n'],
    ['an open quote', '2;a="b\r\nab\r\n'],
    ['an LF in an extension', '2;a="\n"\r\nab\r\n'],
    ['a blank in an extension', '2; a\r\nab\r\n'],
    ['extensions without end', `2;${'a'.repeat(300)}\r\nab\r\n`],
    ['extensions of the last one that are none', '0;\r\n\r\n'],
    ['a trailer without a name', '0\r\nX\r\n\r\n'],
    ['a length as a trailer', '0\r\nContent-Length: 0\r\n\r\n'],
    ['a coding as a trailer', '0\r\ntransfer-encoding: chunked\r\n\r\n'],
    ['a folded trailer', '0\r\nA: b\r\n c\r\n\r\n'],
    ['a bare LF in a trailer', '0\r\nA: b\nC: d\r\n\r\n'],
    ['a bare LF behind the last one', '0\n\r\n\r\n'],
    ['a bare CR behind the last one', '0\rA: b\r\n\r\n'],
  ])('with %s are refused', (_name, chunks) => {
    expect(both(head('200 OK', 'Transfer-Encoding: chunked') + chunks)).toEqual(MALFORMED)
  })

  it('end with a bounded trailer section', () => {
    const text = `${head('200 OK', 'Transfer-Encoding: chunked')}0\r\n${'a: b\r\n'.repeat(3000)}\r\n`
    expect(both(text)).toEqual(TOO_LARGE)
  })
})

describe('what can become no answer any more', () => {
  it.each([
    ['another protocol', 'SSH-2.0-OpenSSH_9.6\r\n'],
    ['TLS', '\x15\x03\x01\0\x02\x02\x16'],
    ['nothing before the status line', '\r\n'],
    ['bare LFs', 'HTTP/1.1 200 OK\nContent-Length: 2\n\nok'],
    ['a NUL', 'HTTP/1.1 200 OK\r\nA: \0'],
    ['an interim answer and something else', `${head('100 Continue')}ok`],
    ['a trailer with a bare LF', `${head('200 OK', 'Transfer-Encoding: chunked')}0\r\nA: b\nC`],
  ])('is refused before its end: %s', (_name, text) => {
    expect(both(text)).toEqual(MALFORMED)
  })
})

describe('an answer that is cut', () => {
  it.each([
    ['in its head', 'HTTP/1.1 200 OK\r\nA: '],
    ['behind an interim one', head('100 Continue')],
    ['before its body', head('200 OK', 'Content-Length: 2')],
    ['in its body', head('200 OK', 'Content-Length: 2') + 'a'],
    ['in a chunk', head('200 OK', 'Transfer-Encoding: chunked') + '2\r\na'],
    ['between chunks', head('200 OK', 'Transfer-Encoding: chunked') + '2\r\nab\r\n'],
    ['in the last chunk', head('200 OK', 'Transfer-Encoding: chunked') + '0\r\n'],
    ['in a trailer', head('200 OK', 'Transfer-Encoding: chunked') + '0\r\nA: b\r\n'],
  ])('%s is not whole', (_name, text) => {
    expect(both(text)).toMatchObject({ kind: 'cut' })
  })
})
