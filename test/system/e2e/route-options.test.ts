import { createServer, type IncomingMessage } from 'node:http'
import { createSecureServer } from 'node:http2'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import { afterEach, describe, expect, it } from 'vitest'
import { rawConnect } from '../../support/raw.ts'
import { createSockets } from '../../support/sockets.ts'
import { TLS } from '../../support/tls.ts'
import { authConfig, proxyConfig, run } from '../../support/e2e/run.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const file = (name: string): string => new URL(`../../fixtures/tls/${name}`, import.meta.url).pathname
const CA = { caCertPath: file('ca.pem') }

/** The real proxy with one route for each of these, at `/<name>`. */
async function start(routes: Readonly<Record<string, { target: string } & Record<string, unknown>>>) {
  const proxy = await run({
    'auth.json': authConfig('none', { type: 'unauthenticated' }),
    'proxy.json': proxyConfig({
      auth: { mode: 'anonymous' },
      routes: Object.entries(routes).map(([name, options]) =>
        Object.assign({ name, path: `/${name}`, externalAuthConfigRef: { name: 'none' } }, options),
      ),
    }),
  })
  return sockets.closing(proxy)
}

const outcome = async (response: Response): Promise<[number, string]> => {
  const text = await response.text()
  const body = text.startsWith('{') ? (JSON.parse(text) as { error: { data: { reason: string } } }) : undefined
  return [response.status, body?.error.data.reason ?? text]
}

describe('sseKeepAlive', () => {
  it('writes comments into a silent stream of its route only', async () => {
    const target = await sockets.http((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: one\n\n')
    })
    const proxy = await start({ kept: { target, sseKeepAlive: '50ms' }, silent: { target } })
    const open = (name: string) => rawConnect(proxy.url, `GET /${name} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
    const [kept, silent] = [open('kept'), open('silent')]
    await kept.until(/(:[^\n]*\n\n.*){3}/s)
    expect(silent.text()).not.toMatch(/\n:/)
    for (const { socket } of [kept, silent]) socket.destroy()
  })
})

describe('allowUpgrade', () => {
  it('lets an upgrade through on its route, 501 elsewhere', async () => {
    const server = createServer()
    server.on('upgrade', (_request: IncomingMessage, socket: Duplex) => {
      socket.end('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello')
    })
    const target = `http://${await sockets.listen(server)}`
    const proxy = await start({ open: { target, allowUpgrade: true }, closed: { target } })
    const ask = (name: string) =>
      rawConnect(
        proxy.url,
        `GET /${name} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
      )
    expect(await ask('open').until(/hello$/)).toMatch(/^HTTP\/1\.1 101 /)
    expect(await ask('closed').until(/\}\}\}/)).toMatch(/^HTTP\/1\.1 501 .*"reason":"upgrade_refused"/s)
  })
})

describe('http2', () => {
  it('is offered to the backend of its route only', async () => {
    const server = createSecureServer({ ...TLS.server, allowHTTP1: true }, (request, response) => {
      response.end(`HTTP/${request.httpVersion}`)
    })
    const target = `https://${await sockets.listen(server)}`
    const proxy = await start({ two: { target, http2: true, targetTls: CA }, one: { target, targetTls: CA } })
    expect(await outcome(await fetch(`${proxy.url}/two`))).toEqual([200, 'HTTP/2.0'])
    expect(await outcome(await fetch(`${proxy.url}/one`))).toEqual([200, 'HTTP/1.1'])
  })
})

describe('targetTls', () => {
  it('has a certificate authority, a name, a client certificate, or no verification, as each route says', async () => {
    const options = { ...TLS.server, ca: TLS.ca, requestCert: true, rejectUnauthorized: false }
    const target = await sockets.https(options, ({ socket }, response) => {
      const peer = socket as TLSSocket
      response.end(
        `${String(peer.servername)} ${peer.authorized ? String(peer.getPeerCertificate().subject.CN) : 'nobody'}`,
      )
    })
    const proxy = await start({
      system: { target },
      ca: { target, targetTls: CA },
      other: { target, targetTls: { caCertPath: file('other-ca.pem') } },
      name: { target, targetTls: { ...CA, serverName: 'backend.test' } },
      wrong: { target, targetTls: { ...CA, serverName: 'elsewhere.test' } },
      client: { target, targetTls: { ...CA, clientCertFile: file('client.pem'), clientKeyFile: file('client.key') } },
      skip: { target, targetTls: { insecureSkipVerify: true } },
    })
    const of = async (name: string) => outcome(await fetch(`${proxy.url}/${name}`))
    expect(await of('system')).toEqual([502, 'backend_unreachable'])
    expect(await of('ca')).toEqual([200, expect.stringMatching(/ nobody$/)])
    expect(await of('other')).toEqual([502, 'backend_unreachable'])
    expect(await of('name')).toEqual([200, 'backend.test nobody'])
    expect(await of('wrong')).toEqual([502, 'backend_unreachable'])
    expect(await of('client')).toEqual([200, expect.stringMatching(/ client$/)])
    expect(await of('skip')).toEqual([200, expect.stringMatching(/ nobody$/)])
  })

  it('with a file that is not there is a configuration error at the start', async () => {
    const target = 'https://127.0.0.1:1'
    await expect(start({ a: { target, targetTls: { caCertPath: '/nowhere/ca.pem' } } })).rejects.toMatchObject({
      code: 'config_error',
    })
  })
})

describe('insecureAllowAnonymous', () => {
  it('lets anonymous callers use a static credential on an open bind, and without it nothing starts', async () => {
    const target = await sockets.http(({ headers }, response) => response.end(headers['x-api-key']))
    const begin = (more: object) =>
      run(
        {
          'auth.json': authConfig('key', {
            type: 'headerInjection',
            headerInjection: { headerName: 'X-Api-Key', valueSecretRef: { name: 'api', key: 'key' } },
          }),
          'proxy.json': proxyConfig({
            auth: { mode: 'anonymous' },
            routes: [{ name: 'a', path: '/', target, externalAuthConfigRef: { name: 'key' }, ...more }],
          }),
          'secrets/api/key': 'the-key',
        },
        { listen: '0.0.0.0:0' },
      )
    await expect(begin({})).rejects.toMatchObject({ lines: [expect.stringContaining('insecureAllowAnonymous')] })
    const proxy = sockets.closing(await begin({ insecureAllowAnonymous: true }))
    const url = proxy.url.replace(/\/\/[^:]+:/, '//127.0.0.1:')
    expect(await outcome(await fetch(url))).toEqual([200, 'the-key'])
  })
})
