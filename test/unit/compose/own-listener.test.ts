import { createServer as createTlsServer } from 'node:https'
import { createServer, type RequestListener } from 'node:http'
import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { afterEach, describe, expect, it } from 'vitest'
import { type OwnListener, requestOwnListener } from '../../../src/compose/own-listener.ts'
import { createSockets } from '../../support/sockets.ts'
import { TLS } from '../../support/tls.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const echo: RequestListener = (request, response) => {
  void text(request).then((body) => response.end(JSON.stringify([request.headers.host, request.headers['x-a'], body])))
}

async function ask(listener: Partial<OwnListener> & { url: string }): Promise<unknown> {
  const answer = await requestOwnListener(
    { allowedHosts: [], certificate: undefined, ...listener },
    {
      method: 'POST',
      path: '/x',
      headers: { 'x-a': 'b' },
      body: Buffer.from('body'),
      signal: AbortSignal.timeout(5000),
    },
  )
  return JSON.parse(await text(answer))
}
const portOf = (address: string): string => address.slice(address.lastIndexOf(':') + 1)

describe('a request to the own listener', () => {
  it('reaches a port, also one that is bound to all addresses', async () => {
    const port = portOf(await sockets.listen(createServer(echo)))
    expect(await ask({ url: `http://127.0.0.1:${port}` })).toEqual([`127.0.0.1:${port}`, 'b', 'body'])
    expect(await ask({ url: `http://0.0.0.0:${port}` })).toEqual([`127.0.0.1:${port}`, 'b', 'body'])
  })

  it('asks for a host that is served', async () => {
    const port = portOf(await sockets.listen(createServer(echo)))
    const allowedHosts = ['mcp.example.com:443', 'other.example.com']
    expect(await ask({ url: `http://0.0.0.0:${port}`, allowedHosts })).toEqual(['mcp.example.com:443', 'b', 'body'])
  })

  it('reaches a Unix socket', async () => {
    const folder = await mkdtemp(path.join(os.tmpdir(), 'own-'))
    const server = sockets.closing(createServer(echo))
    const place = path.join(folder, 's')
    await new Promise<void>((resolve) => server.listen(place, resolve))
    expect(await ask({ url: `unix:${place}` })).toEqual(['localhost', 'b', 'body'])
    await rm(folder, { recursive: true, force: true })
  })

  it('takes its own certificate over TLS, whatever name is in it, and no other', async () => {
    const [own, other] = [TLS.server, TLS.otherServer]
    const url = `https://${await sockets.listen(createTlsServer(own, echo))}`
    expect(await ask({ url, certificate: Buffer.from(own.cert) })).toEqual([new URL(url).host, 'b', 'body'])
    await expect(ask({ url, certificate: Buffer.from(other.cert) })).rejects.toThrow(/self.signed|unable to/i)
  })
})
