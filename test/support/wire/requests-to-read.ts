import { chunks } from './answers.ts'
import type { Chance } from './random.ts'

const LINES = [
  'Accept: */*',
  'X-Empty:',
  'X-Blank: \t ',
  'Authorization: Bearer a.b.c',
  'Cookie: a=b; c=d',
  'X-Text: \x80caf\xe9',
  'x-Case: y',
  '__proto__: x',
  'constructor: y',
  'TE: trailers',
  'Trailer: X-Sum',
  'Connection: keep-alive',
  'Connection: Close',
]
const RARE = [
  'X-Twice: a\r\nx-twice: b',
  'Cookie: e=f\r\nCookie: g=h',
  'Authorization: Bearer x',
  'Expect: 200-ok',
  'X-Tab: a\t ',
  'Connection: x-a, Keep-Alive',
  'Connection: upgrade\r\nUpgrade: h2c',
  'Connection: close, keep-alive',
  'Connection: Upgrade',
  'Connection: upgrade\r\nUpgrade: websocket',
  'Upgrade: h2c',
  'Proxy-Connection: close',
  'Expect: 100-continue',
  'Set-Cookie: a=b',
  'Host: i',
]
const METHODS = ['GET', 'GET', 'POST', 'POST', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS']
const RARE_METHODS = ['TRACE', 'CONNECT', 'PROPFIND', 'SOURCE', 'get']
const TARGETS = [
  '/',
  '/mcp',
  '/a/b?c=d',
  '/%2e',
  '/"<>\\^`{|}',
  '/?',
  '*',
  'http://h/',
  'https://h:1/a?b',
  'x:y',
  '/a#b',
  '/\xe9',
]
const USUAL = ['none', 'length', 'length', 'chunked', 'chunked'] as const
const FRAMINGS = [...USUAL, ...USUAL, ...USUAL, 'both', 'twice'] as const
const BODIES = ['', '{}', 'hello', '\r\n\r\n', '0\r\n\r\n', 'GET /b HTTP/1.1\r\nHost: h\r\n\r\n', 'x'.repeat(300)]

/** Requests of one connection, mostly well formed. */
export function requests(chance: Chance): Buffer {
  let text = ''
  for (let count = 1 + chance.below(3); count > 0; count--) text += request(chance)
  return Buffer.from(text, 'latin1')
}

function request(chance: Chance): string {
  const isOdd = chance.below(12) === 0
  const method = chance.one(isOdd ? RARE_METHODS : METHODS)
  const target = chance.one(isOdd ? TARGETS : TARGETS.slice(0, 6))
  const version = chance.below(30) === 0 ? chance.one(['1.0', '1.0', '1.0', '1.2', '2.0']) : '1.1'
  const blank = chance.below(40) === 0 ? '  ' : ' '
  let text = chance.below(40) === 0 ? '\r\n' : ''
  text += `${method}${blank}${target}${blank}HTTP/${version}\r\nHost: h\r\n`
  const seen = new Set<string>()
  for (let count = chance.below(5); count > 0; count--) seen.add(chance.one(LINES))
  if (chance.below(12) === 0) seen.add(chance.one(RARE))
  for (const line of seen) text += `${line}\r\n`
  return text + framed(chance, chance.one(BODIES))
}

function framed(chance: Chance, body: string): string {
  const length = `Content-Length: ${body.length}\r\n`
  const chunked = `${chance.one(['Transfer-Encoding', 'transfer-encoding'])}: ${chance.one(['chunked', 'Chunked'])}\r\n`
  switch (chance.one(FRAMINGS)) {
    case 'none':
      return '\r\n'
    case 'length':
      return `${length}\r\n${body}`
    case 'chunked':
      return `${chunked}\r\n${chunks(chance, body)}`
    case 'both':
      return `${length}${chunked}\r\n${chunks(chance, body)}`
    default:
      return `${length}${length}\r\n${body}`
  }
}
