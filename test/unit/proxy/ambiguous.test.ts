import { afterEach, describe, expect, it } from 'vitest'
import { rawConnect } from '../../support/raw.ts'
import { createSockets } from '../../support/sockets.ts'
import { createRoute, runtimeOf, startProxy, startRawBackend } from '../../support/proxy/harness.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

/** Sends raw bytes, waits for an answer, and says what the backend saw. */
async function send(bytes: string): Promise<{ answer: string; received: readonly string[] }> {
  const backend = await startRawBackend(sockets)
  const proxy = await startProxy(sockets, runtimeOf([createRoute(sockets, backend.origin, { targetPath: '/mcp' })]))
  const client = rawConnect(proxy.url, bytes)
  const answer = await client.until(/\r\n\r\n/)
  client.socket.end()
  await client.ended
  return { answer: client.text() || answer, received: backend.received }
}

const post = (headers: string, body = '', target = '/x', version = '1.1'): string =>
  `POST ${target} HTTP/${version}\r\n${headers}\r\n${body}`
const get = (target: string, headers = 'Host: localhost\r\n', version = '1.1'): string =>
  `GET ${target} HTTP/${version}\r\n${headers}\r\n`

describe('ambiguous requests', () => {
  it.each([
    [
      'Content-Length and Transfer-Encoding',
      post('Host: localhost\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n'),
    ],
    [
      'Transfer-Encoding and Content-Length',
      post('Host: localhost\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n', '0\r\n\r\n'),
    ],
    ['two Content-Length', post('Host: localhost\r\nContent-Length: 3\r\nContent-Length: 4\r\n', 'abcd')],
    ['a list of lengths', post('Host: localhost\r\nContent-Length: 3, 3\r\n', 'abc')],
    ['a signed length', post('Host: localhost\r\nContent-Length: +3\r\n', 'abc')],
    [
      'two Transfer-Encoding',
      post('Host: localhost\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n'),
    ],
    ['another transfer coding', post('Host: localhost\r\nTransfer-Encoding: gzip, chunked\r\n', '0\r\n\r\n')],
    ['an unknown transfer coding', post('Host: localhost\r\nTransfer-Encoding: xchunked\r\n', '0\r\n\r\n')],
    [
      'Transfer-Encoding in HTTP/1.0',
      post('Host: localhost\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n', '/x', '1.0'),
    ],
    ['obs-fold', get('/x', 'Host: localhost\r\nX-A: 1\r\n 2\r\n')],
    ['NUL in a header', get('/x', 'Host: localhost\r\nX-A: 1\x002\r\n')],
    ['NUL in the path', get('/x\0y')],
    ['a bare CR in a header', get('/x', 'Host: localhost\r\nX-A: 1\r2\r\n')],
    ['a space before the colon', get('/x', 'Host: localhost\r\nX-A : 1\r\n')],
    ['two Host', get('/x', 'Host: localhost\r\nHost: localhost\r\n')],
    ['two different Host', get('/x', 'Host: localhost\r\nX: y\r\nhOST: evil.example\r\n')],
    ['no Host', get('/x', 'X-A: 1\r\n')],
    ['an empty Host', get('/x', 'Host: \r\n')],
    ['a Host with user information', get('/x', 'Host: localhost@evil.example\r\n')],
    ['a Host with a path', get('/x', 'Host: localhost/x\r\n')],
    ['absolute-form with another host', get('http://evil.example/x')],
    ['absolute-form with another port', get('http://localhost:1/x')],
    ['absolute-form with user information', get('http://a@localhost/x')],
    ['asterisk-form', 'OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n'],
    ['a fragment', get('/x#y')],
    ['a fragment in the query', get('/x?a#y')],
    ['a backslash', get('/x\\y')],
    ['an encoded backslash', get('/x%5Cy')],
    ['an encoded slash', get('/x%2fy')],
    ['an encoded slash hidden by %25', get('/x%252Fy')],
    ['an encoded slash hidden twice', get('/x%25252fy')],
    ['an encoded NUL', get('/x%00')],
    ['a dot segment', get('/x/../y')],
    ['a single dot segment', get('/x/./y')],
    ['a final dot segment', get('/x/..')],
    ['an encoded dot segment', get('/x/%2e%2E/y')],
    ['a dot segment with parameters', get('/x/..;/y')],
    ['an incomplete percent-encoding', get('/x%2')],
    ['a byte outside ASCII in the path', get('/\xe4')],
    ['access_token in the query', get('/x?a=b&access_token=t')],
    ['an HTTP version that does not exist', get('/x', 'Host: localhost\r\n', '1.7')],
    ['line ends without CR', 'GET /x HTTP/1.1\nHost: localhost\n\n'],
    ['something else than HTTP', '\x16\x03\x01\x02\x00\x01\r\n\r\n'],
  ])('%s gets 400 and never reaches the backend', async (_, bytes) => {
    const { answer, received } = await send(bytes)
    expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/)
    expect(answer).toContain('"reason":"bad_request"')
    expect(received).toEqual([])
  })

  it.each([
    ['a Host that is not of this machine', get('/x', 'Host: evil.example\r\n'), 403, 'bad_origin'],
    ['a Host that only looks like it', get('/x', 'Host: localhost.evil.example\r\n'), 403, 'bad_origin'],
    ['TRACE', 'TRACE /x HTTP/1.1\r\nHost: localhost\r\n\r\n', 405, 'method_not_allowed'],
    ['CONNECT', 'CONNECT localhost:80 HTTP/1.1\r\nHost: localhost:80\r\n\r\n', 405, 'method_not_allowed'],
    [
      'a header section that is too large',
      get('/x', `Host: localhost\r\nX-A: ${'a'.repeat(20_000)}\r\n`),
      431,
      'headers_too_large',
    ],
    ['a target that is too large', get(`/${'a'.repeat(20_000)}`), 431, 'headers_too_large'],
    [
      'an upgrade',
      get('/x', 'Host: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n'),
      501,
      'upgrade_refused',
    ],
    ['a discovery document that we do not have', get('/.well-known/openid-configuration'), 404, 'not_found'],
    ['a discovery document, encoded', get('/%2ewell-known/openid-configuration'), 404, 'not_found'],
    ['a discovery document, with more slashes', get('//.Well-Known/x'), 404, 'not_found'],
    [
      'a discovery document that is written',
      'PUT /.well-known/x HTTP/1.1\r\nHost: localhost\r\n\r\n',
      404,
      'not_found',
    ],
  ])('%s is refused', async (_, bytes, status, reason) => {
    const { answer, received } = await send(bytes)
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
    expect(answer).toContain(`"reason":"${reason}"`)
    expect(received).toEqual([])
  })

  it.each([
    ['origin-form', get('/x%20y?a=%2F..&b'), 'GET /mcp/x%20y?a=%2F..&b HTTP/1.1'],
    ['absolute-form with the same host', get('http://LOCALHOST:80/x'), 'GET /mcp/x HTTP/1.1'],
    ['an empty query', get('/x?'), 'GET /mcp/x? HTTP/1.1'],
    ['HTTP/1.0', get('/x', 'Host: localhost\r\n', '1.0'), 'GET /mcp/x HTTP/1.1'],
    [
      'an offer of h2c',
      get(
        '/x',
        'Host: localhost\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n',
      ),
      'GET /mcp/x HTTP/1.1',
    ],
    [
      'a chunked body',
      post('Host: localhost\r\nTransfer-Encoding: chunked\r\n', '3\r\nabc\r\n0\r\n\r\n'),
      'POST /mcp/x HTTP/1.1',
    ],
    ['a method we do not know', 'PROPFIND /x HTTP/1.1\r\nHost: [::1]:8\r\n\r\n', 'PROPFIND /mcp/x HTTP/1.1'],
  ])('%s goes through', async (_, bytes, line) => {
    const { answer, received } = await send(bytes)
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
    expect(received).toHaveLength(1)
    expect(received[0]?.split('\r\n')[0]).toBe(line)
    expect(received[0]).not.toMatch(/upgrade|http2-settings/i)
  })
})
