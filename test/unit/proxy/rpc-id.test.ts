import { afterEach, describe, expect, it } from 'vitest'
import { Failure } from '../../../src/core/index.ts'
import { rawConnect } from '../../support/raw.ts'
import { createSockets } from '../../support/sockets.ts'
import { createRoute, runtimeOf, startProxy, type RouteOptions } from '../../support/proxy/harness.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const CALL = '{"method":"tools/call","params":{"id":9},"jsonrpc":"2.0","id":"call-1"}'
const unknown: RouteOptions = {
  isProtected: true,
  caller: () => {
    throw new Failure('missing_token')
  },
}
const refused: RouteOptions = {
  credential: () => {
    throw new Failure('no_role')
  },
}

async function start(options: RouteOptions) {
  const origin = await sockets.http((request, response) => {
    request.resume().on('end', () => response.writeHead(401).end())
  })
  return startProxy(sockets, runtimeOf([createRoute(sockets, origin, options)]))
}

async function errorOf(options: RouteOptions, body: string, init: RequestInit = {}) {
  const proxy = await start(options)
  const response = await fetch(proxy.url, { method: 'POST', body, ...init })
  return (await response.json()) as { id?: unknown; error: { data: { reason: string } } }
}

const chunked = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`
const post = (lines: string): string => `POST / HTTP/1.1\r\nHost: localhost\r\n${lines}\r\n`

describe('an error of the proxy carries the id of the JSON-RPC request', () => {
  it.each<[string, RouteOptions, string]>([
    ['before the caller is known', unknown, 'missing_token'],
    ['when the body was kept', refused, 'no_role'],
    ['after the backend was asked', {}, 'backend_wants_credential'],
  ])('%s', async (_, options, reason) => {
    const { id, error } = await errorOf(options, CALL)
    expect([id, error.data.reason]).toEqual(['call-1', reason])
  })

  it('when the body comes a moment after the head', async () => {
    const proxy = await start(unknown)
    const client = rawConnect(proxy.url, post(`Content-Length: ${CALL.length}\r\n`))
    client.socket.setNoDelay(true).once('connect', () => setImmediate(() => client.socket.write(CALL)))
    expect(await client.until(/\}\}\}/)).toMatch(/^HTTP\/1\.1 401 /)
  })

  it('when it is chunked, and the connection stays', async () => {
    const proxy = await start(unknown)
    const once = post('Transfer-Encoding: chunked\r\n') + chunked(CALL)
    const text = await rawConnect(proxy.url, once + once).until(/call-1[^]*call-1/)
    expect(text.match(/HTTP\/1\.1 401 /g)).toHaveLength(2)
  })
})

describe('an error of the proxy has no id', () => {
  it.each<[string, string, RequestInit]>([
    ['for a notification', '{"jsonrpc":"2.0","method":"x"}', {}],
    ['for what is no JSON', 'hello', {}],
    ['for another method than POST', CALL, { method: 'PUT' }],
    ['when the body is over 64 KiB and not buffered', CALL + ' '.repeat(64 * 1024), {}],
  ])('%s', async (_, body, init) => {
    const answer = await errorOf(unknown, body, init)
    expect(answer.error.data.reason).toBe('missing_token')
    expect('id' in answer).toBe(false)
  })

  it('when the body does not come soon', async () => {
    const proxy = await start(unknown)
    const text = await rawConnect(proxy.url, post('Content-Length: 100\r\n') + CALL).until(/\}\}\}/)
    expect(text).toMatch(/^HTTP\/1\.1 401 /)
    expect(text).not.toContain('call-1')
  })

  it('when the client waits to be asked for the body', async () => {
    const proxy = await start(unknown)
    const head = post(`Expect: 100-continue\r\nContent-Length: ${CALL.length}\r\n`)
    expect(await rawConnect(proxy.url, head).until(/\}\}\}/)).toMatch(/^HTTP\/1\.1 401 /)
  })
})
