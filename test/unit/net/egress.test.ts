import { createServer } from 'node:http'
import { connect, type Socket } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { createBackend, createOutbound, egressProxyFor, type OutboundOptions } from '../../../src/net/index.ts'
import { ask } from '../../support/net/ask.ts'
import { createSockets } from '../../support/sockets.ts'
import { TLS } from '../../support/tls.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

/** A forward proxy that tunnels every name to this machine, and remembers what it was asked. */
const startProxy = async (
  refuse = false,
  established = '200 Connection established',
): Promise<{ url: string; asked: string[] }> => {
  const asked: string[] = []
  const server = createServer((request, response) => {
    asked.push(
      `${request.method} ${request.url} ${request.headers.host} ${request.headers['proxy-authorization'] ?? '-'}`,
    )
    response.end('from the proxy')
  })
  server.on('connect', (request, client: Socket, head) => {
    asked.push(`CONNECT ${request.url} ${request.headers['proxy-authorization'] ?? '-'}`)
    if (refuse) {
      client.end('HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n')
      return
    }
    const target = connect({ host: '127.0.0.1', port: Number(request.url?.split(':').at(-1)) }, () => {
      client.write(`HTTP/1.1 ${established}\r\n\r\n`)
      target.write(head)
      target.pipe(client).pipe(target)
    })
    target.on('error', () => client.destroy())
    client.on('error', () => target.destroy())
  })
  return { url: `http://${await sockets.listen(server)}`, asked }
}
const portOf = (origin: string): string => new URL(origin).port
const serveTls = () => sockets.https(TLS.server, (request, response) => response.end(`secure ${request.headers.host}`))
const outcome = async (url: string, options: Partial<OutboundOptions>): Promise<string> => {
  const client = sockets.closing(
    createOutbound({ name: 'idp', clock: Date, deadlineMs: 1000, caCert: () => TLS.ca, ...options }),
  )
  return client.request({ method: 'GET', url }).then(
    (answer) => answer.body.toString(),
    (error: unknown) => (error as { kind: string }).kind,
  )
}

describe('which proxy is used', () => {
  const egress = { httpsProxy: 'http://secure:1', httpProxy: 'plain:2' }
  it.each([
    ['https://a.example/', undefined, 'http://secure:1'],
    ['http://a.example/', undefined, 'http://plain:2'],
    ['https://a.example/', '*', undefined],
    ['https://a.example/', 'a.example', undefined],
    ['https://A.example./', 'a.example', undefined],
    ['https://b.a.example/', 'a.example', undefined],
    ['https://b.a.example/', '.a.example', undefined],
    ['https://a.example/', '*.a.example', 'http://secure:1'],
    ['https://b.a.example/', '*.a.example', undefined],
    ['https://ba.example/', 'a.example', 'http://secure:1'],
    ['https://a.example/', 'a.example:443', undefined],
    ['https://a.example:8443/', 'a.example:443', 'http://secure:1'],
    ['https://[::1]:8443/', '[::1]:8443', undefined],
    ['https://[::1]/', '::1', undefined],
    ['https://127.0.0.1/', 'localhost, 127.0.0.1', undefined],
    ['https://a.example/', 'b.example c.example', 'http://secure:1'],
    ['https://10.1.2.3:8443/', '10.0.0.0/8', undefined],
    ['http://10.1.2.3/', 'a.example,10.0.0.0/8', undefined],
    ['https://11.1.2.3/', '10.0.0.0/8', 'http://secure:1'],
    ['https://10.1.2.3/', '10.1.2.3/32', undefined],
    ['https://[fd00::1]/', 'fd00::/8', undefined],
    ['https://[fe00::1]/', 'fd00::/8', 'http://secure:1'],
    ['https://[fd00::1]/', '10.0.0.0/8', 'http://secure:1'],
    ['https://10.1.2.3/', '10.0.0.0/33', 'http://secure:1'],
    ['https://10.1.2.3/', 'example/8', 'http://secure:1'],
    // Names are not looked up for it, as elsewhere.
    ['https://a.example/', '0.0.0.0/0', 'http://secure:1'],
  ])('for %s with NO_PROXY %s is %s', (url, noProxy, expected) => {
    const proxy = egressProxyFor(new URL(url), { ...egress, ...(noProxy === undefined ? {} : { noProxy }) })
    expect(proxy?.origin).toBe(expected)
  })

  it('is none when none is set', () => {
    expect(egressProxyFor(new URL('https://a.example'), undefined)).toBeUndefined()
    expect(egressProxyFor(new URL('https://a.example'), { httpsProxy: '' })).toBeUndefined()
  })
})

describe('an identity provider behind an egress proxy', () => {
  it('is reached through a tunnel, and TLS is with the provider', async () => {
    const proxy = await startProxy()
    const port = portOf(await serveTls())
    const httpsProxy = proxy.url.replace('//', '//user:p%40ss@')
    expect(await outcome(`https://idp.test:${port}/`, { egressProxy: { httpsProxy } })).toBe(`secure idp.test:${port}`)
    expect(proxy.asked).toEqual([`CONNECT idp.test:${port} Basic ${btoa('user:p@ss')}`])
    expect(await outcome(`https://elsewhere.test:${port}/`, { egressProxy: { httpsProxy } })).toBe('unreachable')
  })

  it('is reached through a tunnel whichever status of success it has (RFC 9110 §9.3.6)', async () => {
    const proxy = await startProxy(false, '204 Tunnel')
    const port = portOf(await serveTls())
    const egressProxy = { httpsProxy: proxy.url }
    expect(await outcome(`https://idp.test:${port}/`, { egressProxy })).toBe(`secure idp.test:${port}`)
  })

  it('without TLS is asked for by its whole address', async () => {
    const proxy = await startProxy()
    expect(await outcome('http://idp.test/a?b', { egressProxy: { httpProxy: proxy.url } })).toBe('from the proxy')
    expect(proxy.asked).toEqual(['GET http://idp.test/a?b idp.test -'])
  })

  it('is unreachable when the proxy refuses or is not there', async () => {
    const proxy = await startProxy(true)
    expect(await outcome('https://idp.test/', { egressProxy: { httpsProxy: proxy.url } })).toBe('unreachable')
    expect(await outcome('https://idp.test/', { egressProxy: { httpsProxy: 'http://127.0.0.1:1' } })).toBe(
      'unreachable',
    )
  })

  it('is unreachable, and the egress proxy is named, when that wants to know who asks for plain http', async () => {
    const url = await sockets.http((_request, response) => response.writeHead(407).end())
    const client = createOutbound({ name: 'idp', clock: Date, deadlineMs: 1000, egressProxy: { httpProxy: url } })
    sockets.closing(client)
    const error = await client.request({ method: 'GET', url: 'http://idp.test/' }).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ kind: 'unreachable', at: url, cause: { code: 'EGRESS_STATUS_407' } })
  })

  it('may answer 407 itself where no proxy is asked', async () => {
    const url = await sockets.http((_request, response) => response.writeHead(407).end())
    const client = sockets.closing(createOutbound({ name: 'idp', clock: Date, deadlineMs: 1000 }))
    expect((await client.request({ method: 'GET', url })).status).toBe(407)
  })

  it('is still guarded: IP literals and locally resolved names are checked', async () => {
    const proxy = await startProxy()
    const guard = { allowPrivateIP: false, configuredUrls: ['https://idp.test'] }
    const egressProxy = { httpsProxy: proxy.url }
    const port = portOf(await serveTls())
    const known = async (name: string) => {
      if (name === 'inside.test') return ['10.0.0.1']
      if (name === 'idp.test') return ['1.1.1.1']
      throw new Error('not known here')
    }
    const seen = (url: string) => outcome(url, { guard, egressProxy, resolver: known })
    expect(await seen('https://169.254.169.254/')).toBe('blocked_address')
    expect(await seen('https://inside.test/')).toBe('blocked_address')
    expect(proxy.asked).toEqual([])
    expect(await seen(`https://idp.test:${port}/`)).toBe(`secure idp.test:${port}`)
    expect(await seen(`https://backend.test:${port}/`)).toBe(`secure backend.test:${port}`)
  })
})

describe('a backend behind an egress proxy', () => {
  const bounds = { timeouts: { connect: 1000, firstByte: 0, idle: 0 }, http2: false }

  it('is reached through a tunnel with its own TLS settings', async () => {
    const proxy = await startProxy()
    const origin = (await serveTls()).replace('127.0.0.1', 'backend.test')
    const targetTls = { caCertPath: new URL('../../fixtures/tls/ca.pem', import.meta.url).pathname }
    const backend = createBackend({ ...bounds, origin, targetTls, egressProxy: { httpsProxy: proxy.url } })
    sockets.closing({ close: () => backend.destroy() })
    const answer = await ask(backend.exchanges, { method: 'GET', path: '/x', headers: ['x-a', '1', 'x-a', '2'] })
    expect(await answer.text).toBe(`secure ${new URL(origin).host}`)
    expect(proxy.asked).toEqual([`CONNECT ${new URL(origin).host} -`])
  })

  it('may take any time for a tunnel where its connection has no bound', async () => {
    const proxy = await startProxy()
    const origin = (await serveTls()).replace('127.0.0.1', 'backend.test')
    const targetTls = { caCertPath: new URL('../../fixtures/tls/ca.pem', import.meta.url).pathname }
    const timeouts = { connect: 0, firstByte: 0, idle: 0 }
    const backend = createBackend({ origin, timeouts, http2: false, targetTls, egressProxy: { httpsProxy: proxy.url } })
    sockets.closing({ close: () => backend.destroy() })
    const answer = await ask(backend.exchanges, { method: 'GET', path: '/x' })
    expect(await answer.text).toBe(`secure ${new URL(origin).host}`)
  })

  it('without TLS gets its requests from the proxy, all headers as sealed', async () => {
    const proxy = await startProxy()
    const backend = createBackend({ ...bounds, origin: 'http://backend.test', egressProxy: { httpProxy: proxy.url } })
    sockets.closing({ close: () => backend.destroy() })
    const headers = ['host', 'backend.test']
    const answer = await ask(backend.exchanges, { method: 'GET', path: '/a%2Fb?c', headers })
    expect(await answer.text).toBe('from the proxy')
    expect(proxy.asked).toEqual(['GET http://backend.test/a%2Fb?c backend.test -'])
  })
})
