import { afterEach, describe, expect, it } from 'vitest'
import { Secret } from '../../../src/core/index.ts'
import {
  type Arrived,
  openBridge,
  result,
  startServer,
  type TestBridge,
  type TestServer,
} from '../../support/bridge/harness.ts'

let server: TestServer
let bridge: TestBridge

afterEach(async () => {
  await bridge.close()
  await server.close()
})

async function open(answer: (arrived: Arrived) => void, options: Parameters<typeof openBridge>[1] = {}): Promise<void> {
  server = await startServer(answer)
  bridge = openBridge(server.url, options)
  bridge.read()
}

const CALL = { id: 7, method: 'tools/call', params: { name: 'x' } }
const raw = (status: number, type: string, body: string | Buffer) => (arrived: Arrived) =>
  void arrived.response.writeHead(status, { 'content-type': type }).end(body)
const event = (data: string) => `event: message\ndata: ${data}\n\n`
const STREAM = 'text/event-stream'
const ANSWER = JSON.stringify(result(7, { text: 'Grüße 🎉' }))

describe('an answer that can not be one is an error of the request that it belongs to', () => {
  it.each<[string, (arrived: Arrived) => void, string]>([
    ['a page', raw(200, 'text/html', '<html>'), 'bad_answer'],
    ['no content type', ({ response }) => void response.writeHead(200).end('{}'), 'bad_answer'],
    ['JSON that is broken', raw(200, 'application/json', '{"jsonrpc":"2.0","id":7,"resu'), 'bad_answer'],
    ['JSON that is no message', raw(200, 'application/json', '[1, 2]'), 'bad_answer'],
    [
      'bytes that are no UTF-8',
      raw(200, 'application/json', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d])),
      'bad_answer',
    ],
    ['accepted, and nothing', ({ response }) => void response.writeHead(202).end(), 'bad_answer'],
    ['a stream that ends', raw(200, STREAM, ': nothing\n\n'), 'stream_lost'],
    ['a stream of no messages', raw(200, STREAM, event('hello')), 'bad_answer'],
    ['an event that ends in a character', raw(200, STREAM, Buffer.from(event(ANSWER)).subarray(0, -8)), 'stream_lost'],
    ['an event with half a character', raw(200, STREAM, Buffer.from(event('"ü"')).subarray(0, 22)), 'stream_lost'],
    ['a response to another request', raw(200, STREAM, event(JSON.stringify(result(8)))), 'stream_lost'],
    ['an error page', raw(500, 'text/html', 'x'.repeat(200_000)), 'endpoint_refused'],
    [
      'a redirect elsewhere',
      ({ response }) => void response.writeHead(302, { location: 'https://example.com/' }).end(),
      'endpoint_refused',
    ],
    [
      'headers that are huge',
      ({ response }) => void response.writeHead(200, { 'x-large': 'x'.repeat(100_000) }).end(),
      'bad_answer',
    ],
    ['a connection that is cut', ({ response }) => void response.destroy(), 'stream_lost'],
    ['what is not HTTP', ({ response }) => void response.socket?.end('ICY 200 OK\r\n\r\n'), 'bad_answer'],
    [
      'half of an answer',
      (arrived) => {
        arrived.response
          .writeHead(200, { 'content-type': 'application/json', 'content-length': '100' })
          .write('{"jsonrpc"')
        setTimeout(() => arrived.response.destroy(), 20)
      },
      'stream_lost',
    ],
    ['an answer that is too large', raw(200, 'application/json', `{"a":"${'x'.repeat(1100 * 1024)}"}`), 'bad_answer'],
    ['an event that is too large', raw(200, STREAM, event('x'.repeat(1100 * 1024))), 'bad_answer'],
    ['many lines that are too large', raw(200, STREAM, 'data: x\n'.repeat(300_000)), 'bad_answer'],
  ])('%s', async (_what, answer, reason) => {
    await open((arrived) => (arrived.body.id === 7 ? answer(arrived) : arrived.json(200, result(arrived.body.id))))
    bridge.send(CALL)
    const { error } = await bridge.answer(7)
    expect(error).toMatchObject({ code: -32_000, data: { reason } })
    expect(error?.message).toMatch(/^The MCP server under test .+\. [A-Z].+\.$/)
    // The next one is served as if nothing had been.
    bridge.send({ id: 8, method: 'ping' })
    expect(await bridge.answer(8)).toMatchObject({ result: {} })
    expect(bridge.replies()).toHaveLength(2)
  })

  it.each<[string, (arrived: Arrived) => void]>([
    [
      'byte by byte',
      ({ response }) => {
        response.writeHead(200, { 'content-type': STREAM })
        const bytes = Buffer.from(event(ANSWER))
        const next = (at: number): void => {
          if (at < bytes.length) response.write(bytes.subarray(at, at + 1), () => setImmediate(next, at + 1))
          else response.end()
        }
        next(0)
      },
    ],
    [
      'over several lines',
      raw(
        200,
        STREAM,
        `\ufeff: hi\r\nevent:message\rdata: {"jsonrpc":"2.0","id":7,\r\ndata:"result":{"text":"Grüße 🎉"}}\r\n\r\n`,
      ),
    ],
    [
      'as JSON over several lines',
      raw(200, 'application/json; charset=utf-8', JSON.stringify(result(7, { text: 'Grüße 🎉' }), null, 2)),
    ],
    ['with an unknown event before it', raw(200, STREAM, `event: ping\ndata: {}\n\n${event(ANSWER)}`)],
    ['in a batch', raw(200, 'application/json', `[${ANSWER}]`)],
  ])('what is right but unusual passes: %s', async (_what, answer) => {
    await open(answer)
    bridge.send(CALL)
    expect(await bridge.answer(7)).toMatchObject({ result: { text: 'Grüße 🎉' } })
    expect(bridge.lines).toHaveLength(1)
  })

  it('passes errors of servers with the id of the request, and what to do about the proxy’s', async () => {
    await open((arrived) => {
      const error = { code: -32_000, message: 'No.', data: { reason: 'no_role', requestId: 'r' } }
      if (arrived.body.id === 1) arrived.json(403, { jsonrpc: '2.0', id: null, error })
      else arrived.json(404, { jsonrpc: '2.0', id: 2, error: { code: -32_601, message: 'Method not found' } })
    })
    bridge.send({ id: 1, method: 'a' }, { id: 2, method: 'b' })
    const { error } = await bridge.answer(1)
    expect(error).toMatchObject({ message: 'No.', data: { reason: 'no_role', requestId: 'r' } })
    expect(error?.data?.['remedy']).toContain('extauth explain')
    expect((await bridge.answer(2)).error).toEqual({ code: -32_601, message: 'Method not found' })
  })

  it('follows a server that moves within its origin, and asks there from then on', async () => {
    await open((arrived) => {
      const { response, body } = arrived
      if (response.req.url === '/mcp/') arrived.json(200, result(body.id))
      else response.writeHead(307, { location: '/mcp/' }).end()
    })
    bridge.send(CALL)
    expect(await bridge.answer(7)).toMatchObject({ result: {} })
    bridge.send({ id: 8, method: 'ping' })
    await bridge.answer(8)
    expect(server.all.map(({ response }) => response.req.url)).toEqual(['/mcp', '/mcp/', '/mcp/'])
  })

  it.each([
    [
      403,
      'application/json',
      '{"message":"Credential should be scoped to a valid region."}',
      /returned 403: Credential should be scoped to a valid region\. The server rejects this caller/,
    ],
    [
      403,
      'application/json',
      '{"Message":"User is not authorized","Code":"AccessDenied"}',
      /returned 403: User is not authorized\. The server rejects/,
    ],
    [
      404,
      'text/html',
      '<html><h1>404 Not Found</h1><hr>nginx</html>',
      /returned 404: 404 Not Found nginx\. Check the URL/,
    ],
    [
      500,
      'text/plain',
      'oops\u0007\n\nBearer abcdefghijkl',
      /returned 500: oops\\u\{7\} Bearer \[masked\]\. Server error/,
    ],
    [500, 'text/plain', `key given-token-of-the-user`, /returned 500: key \[masked\]\. /],
    [400, 'application/json', `{"error":"${'x'.repeat(1000)}"}`, /returned 400: x{300}…\. See the status/],
  ])('%s says what the server says: %s %s', async (status, type, body, expected) => {
    const token = new Secret('given-token-of-the-user')
    const credentials = { current: () => Promise.resolve(token), refused: () => Promise.resolve(true as const) }
    await open(raw(status, type, body), { credentials })
    bridge.send(CALL)
    const { error } = await bridge.answer(7)
    expect(error?.message).toMatch(expected)
  })

  it('does not wait for the end of a text that never ends', async () => {
    await open(({ response }) => void response.writeHead(403, { 'content-type': 'text/plain' }).write('forbidden here'))
    bridge.send(CALL)
    expect((await bridge.answer(7)).error?.message).toContain('returned 403: forbidden here.')
  })

  it('says when to come back', async () => {
    await open(({ response }) => void response.writeHead(503, { 'retry-after': '7' }).end())
    bridge.send(CALL)
    expect((await bridge.answer(7)).error?.data).toEqual({
      reason: 'endpoint_refused',
      status: 503,
      retryAfterSeconds: 7,
    })
  })
})

describe('lines of the client', () => {
  it('may begin with a byte order mark', async () => {
    await open((arrived) => arrived.json(200, result(arrived.body.id)))
    bridge.send(`\uFEFF${JSON.stringify({ jsonrpc: '2.0', ...CALL })}`)
    expect(await bridge.answer(7)).toMatchObject({ result: {} })
  })

  it.each([
    ['{"jsonrpc":"2.0","id":1,', -32_700, null],
    ['hello', -32_700, null],
    ['"hello"', -32_600, null],
    ['{"id":3,"method":"x"}', -32_600, 3],
    ['{"jsonrpc":"2.0","id":{},"method":"x"}', -32_600, null],
    ['{"jsonrpc":"2.0","id":4}', -32_600, 4],
    ['[{"jsonrpc":"2.0","id":5,"method":"x"}]', -32_600, null],
    ['[]', -32_600, null],
    [`{"a":"${'x'.repeat(1024 * 1024)}"}`, -32_600, null],
  ])('that are not messages get an error, and the next is read: %#', async (line, code, id) => {
    await open((arrived) => arrived.json(200, result(arrived.body.id)))
    bridge.send(line, '', '  \r', { id: 9, method: 'ping' })
    expect((await bridge.answer(id)).error?.code).toBe(code)
    await bridge.answer(9)
    expect(server.all).toHaveLength(1)
  })
})
