import type { Chance } from './random.ts'

const LINES = [
  'Content-Type: application/json',
  'X-Empty:',
  'X-Blank: \t ',
  'Set-Cookie: a=b; path=/',
  'Set-Cookie: c=d',
  'Date: Mon, 23 Nov 2026 10:00:00 GMT',
  'Keep-Alive: timeout=5',
  'Connection: keep-alive',
  'Connection: close',
  'X-Text: \x80caf\xe9',
  '__proto__: x',
  'constructor: y',
  'Trailer: X-Sum',
]
const FRAMINGS = ['length', 'length', 'chunked', 'chunked', 'close', 'none', 'both', 'twice'] as const
const STATUSES = [
  '200 OK',
  '200',
  '204 No Content',
  '304 Not Modified',
  '404 Not Found',
  '500 ',
  '206 Partial',
  '599 x',
]
const INTERIM = ['100 Continue', '102 Processing', '103 Early Hints']
/** Bytes inserted by mutations. */
const SPICE = [
  '\r\n',
  '\r',
  '\n',
  ' ',
  '\t',
  '\0',
  '\x7f',
  '\x0b',
  ':',
  ';',
  ',',
  '"',
  '0',
  '1',
  'a',
  '\x80',
  '\r\n ',
  '\r\n\r\n',
  '0\r\n\r\n',
  ';a=b',
  ';a="b;c"',
  'chunked',
  ', chunked',
  'gzip',
  'identity',
  '+5',
  '0x5',
  '5, 5',
  '\r\nContent-Length: 5',
  '\r\nContent-Length: 0',
  '\r\nTransfer-Encoding: chunked',
  '\r\nTransfer-Encoding: gzip, chunked',
  'HTTP/1.1 200 OK\r\n',
  'HTTP/1.0 ',
  'HTTP/2.0 ',
  'ffffffffffffffff',
]

/** An answer that is mostly well formed. */
export function answer(chance: Chance): Buffer {
  let text = ''
  for (let count = chance.below(4) === 0 ? chance.below(3) : 0; count > 0; count--)
    text += `HTTP/1.1 ${chance.one(INTERIM)}\r\n${chance.below(2) === 0 ? 'Link: </a>\r\n' : ''}\r\n`
  text += `HTTP/1.${chance.below(8) === 0 ? 0 : 1} ${chance.one(STATUSES)}\r\n`
  for (let count = chance.below(5); count > 0; count--) text += `${chance.one(LINES)}\r\n`
  const body = chance.one(['', '{}', 'hello', '\r\n\r\n', '0\r\n\r\n', 'x'.repeat(300)])
  return Buffer.from(text + framed(chance, body), 'latin1')
}

function framed(chance: Chance, body: string): string {
  const length = `Content-Length: ${body.length}\r\n`
  const chunked = `${chance.one(['Transfer-Encoding', 'transfer-encoding'])}: ${chance.one(['chunked', 'Chunked'])}\r\n`
  switch (chance.one(FRAMINGS)) {
    case 'length':
      return `${length}\r\n${body}`
    case 'chunked':
      return `${chunked}\r\n${chunks(chance, body)}`
    case 'close':
      return `\r\n${body}`
    case 'none':
      return '\r\n'
    case 'both':
      return `${length}${chunked}\r\n${chunks(chance, body)}`
    default:
      return `${length}${length}\r\n${body}`
  }
}

/** A body in chunks, with extensions and trailers here and there. */
export function chunks(chance: Chance, body: string): string {
  let text = ''
  for (let at = 0; at < body.length;) {
    const end = Math.min(body.length, at + 1 + chance.below(20))
    text += `${(end - at).toString(16)}${chance.below(6) === 0 ? chance.one([';a', ';a=b', ';a="b\\"c"']) : ''}\r\n`
    text += `${body.slice(at, end)}\r\n`
    at = end
  }
  const trailers = chance.below(4) === 0 ? 'X-Sum: 1\r\n' : ''
  return `${text}${chance.one(['0', '00', '0;a=b'])}\r\n${trailers}\r\n`
}

/** The same with some of its bytes changed, left out, doubled or mixed with others. */
export function mutated(chance: Chance, bytes: Buffer): Buffer {
  let text = bytes.toString('latin1')
  for (let count = chance.below(4); count > 0; count--) {
    const at = chance.below(text.length + 1)
    const end = Math.min(text.length, at + chance.below(5))
    const piece = text.slice(at, end)
    const put = [chance.one(SPICE), '', piece + piece, String.fromCharCode(chance.below(256))]
    text = text.slice(0, at) + chance.one(put) + text.slice(chance.below(2) === 0 ? at : end)
  }
  return Buffer.from(text, 'latin1')
}
