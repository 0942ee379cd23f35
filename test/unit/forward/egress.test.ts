import type { Socket } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { explain, type Failure } from '../../../src/core/index.ts'
import { rawConnect } from '../../support/raw.ts'
import { createSockets } from '../../support/sockets.ts'
import { startFront } from '../../support/forward/front.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

/** The response to a client whose backend is behind this egress proxy. */
async function answered(scheme: 'http' | 'https', httpProxy: string, origin = `${scheme}://backend.test`) {
  const backend = { egressProxy: scheme === 'http' ? { httpProxy } : { httpsProxy: httpProxy } }
  const { url } = await startFront(sockets, { origin, backend })
  const answer = await fetch(url, { method: 'POST', body: '{}' })
  return [answer.status, answer.headers.get('reason'), answer.headers.get('proxy-authenticate')]
}

const REFUSED = 'HTTP/1.1 407 Proxy Authentication Required\r\nproxy-authenticate: Basic\r\ncontent-length: 0\r\n\r\n'

describe('an egress proxy that refuses', () => {
  it.each(['http', 'https'] as const)('is not taken for the backend: %s', async (scheme) => {
    const proxy = await sockets.tcp((socket) => void socket.on('data', () => socket.write(REFUSED)))
    expect(await answered(scheme, proxy)).toEqual([502, 'egress_proxy_refused', null])
  })

  it('a tunnel for another reason is named as well', async () => {
    const proxy = await sockets.tcp(
      (socket) => void socket.on('data', () => socket.write(REFUSED.replace('407', '403'))),
    )
    expect(await answered('https', proxy)).toEqual([502, 'egress_proxy_refused', null])
  })

  it('is where its place and remedy point to', async () => {
    const proxy = await sockets.tcp((socket) => void socket.on('data', () => socket.write(REFUSED)))
    const failures: Failure[] = []
    const backend = { egressProxy: { httpProxy: proxy } }
    const { url } = await startFront(sockets, {
      origin: 'http://backend.test',
      backend,
      onFailure: (failure) => void failures.push(failure),
    })
    await fetch(url)
    const [failure] = failures
    const { cause, remedy } = failure === undefined ? { cause: '', remedy: '' } : explain(failure)
    expect(cause).toContain('the egress proxy answered 407')
    expect(cause).toContain(proxy)
    expect(remedy).toContain('USER:PASSWORD')
  })
})

describe('a backend behind an egress proxy', () => {
  it('gets each request in absolute form, with the credential for the proxy', async () => {
    const asked: string[] = []
    const onConnection = (socket: Socket): void =>
      void socket.on('data', (data: Buffer) => {
        asked.push(data.toString('latin1'))
        socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok')
      })
    const proxy = (await sockets.tcp(onConnection)).replace('//', '//user:p%40ss@')
    expect(await answered('http', proxy, 'http://backend.test:81')).toEqual([200, null, null])
    expect(asked[0]).toMatch(/^POST http:\/\/backend\.test:81\/ HTTP\/1\.1\r\n/)
    expect(asked[0]).toContain(`\r\nproxy-authorization: Basic ${btoa('user:p@ss')}\r\n`)
  })

  it('may answer 407 itself where it is connected to directly', async () => {
    const origin = await sockets.http((_request, response) => response.writeHead(407).end())
    const { url } = await startFront(sockets, { origin })
    // fetch takes 407 for that of a proxy.
    expect(await rawConnect(url, 'GET / HTTP/1.1\r\nHost: h\r\n\r\n').until(/\r\n\r\n/)).toMatch(/^HTTP\/1\.1 407 /)
  })
})
