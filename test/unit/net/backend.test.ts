import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createSecureServer } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import { afterEach, describe, expect, it } from 'vitest'
import { Failure } from '../../../src/core/index.ts'
import { type Backend, type BackendOptions, createBackend } from '../../../src/net/index.ts'
import { ask } from '../../support/net/ask.ts'
import { createSockets } from '../../support/sockets.ts'
import { TLS } from '../../support/tls.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const file = (name: string): string => new URL(`../../fixtures/tls/${name}`, import.meta.url).pathname
const CA = { caCertPath: file('ca.pem') }

const backendOf = (origin: string, options: Partial<BackendOptions> = {}): Backend => {
  const backend = createBackend({
    origin,
    timeouts: { connect: 1000, firstByte: 0, idle: 0 },
    http2: false,
    ...options,
  })
  sockets.closing({ close: () => backend.destroy() })
  return backend
}
const get = async (backend: Backend, path = '/'): Promise<string> => {
  const answer = await ask(backend.exchanges, { method: 'GET', path })
  return answer.text
}
const codeOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(String, (error: unknown) => (error instanceof Error && 'code' in error ? String(error.code) : 'none'))

describe('TLS towards a backend', () => {
  const serve = () => sockets.https(TLS.server, (_request, response) => response.end('hello'))

  it('trusts the configured authority and no other', async () => {
    const origin = await serve()
    expect(await get(backendOf(origin, { targetTls: CA }))).toBe('hello')
    expect(await codeOf(get(backendOf(origin)))).toMatch(/UNABLE_TO_VERIFY_LEAF_SIGNATURE|SELF_SIGNED/)
    const other = { caCertPath: file('other-ca.pem') }
    expect(await codeOf(get(backendOf(origin, { targetTls: other })))).toMatch(
      /UNABLE_TO_VERIFY_LEAF_SIGNATURE|SELF_SIGNED/,
    )
  })

  it('checks the name, or the configured one instead', async () => {
    const origin = (await serve()).replace('127.0.0.1', '127.0.0.2')
    const server = await sockets.https(TLS.server, (request, response) => {
      response.end(String((request.socket as TLSSocket).servername))
    })
    expect(await codeOf(get(backendOf(origin, { targetTls: CA })))).not.toBe('hello')
    expect(await get(backendOf(server, { targetTls: { ...CA, serverName: 'backend.test' } }))).toBe('backend.test')
    const wrong = { ...CA, serverName: 'elsewhere.test' }
    expect(await codeOf(get(backendOf(server, { targetTls: wrong })))).toBe('ERR_TLS_CERT_ALTNAME_INVALID')
  })

  it('is not verified only where that is said', async () => {
    expect(await get(backendOf(await serve(), { targetTls: { insecureSkipVerify: true } }))).toBe('hello')
  })

  it('shows the client certificate', async () => {
    const origin = await sockets.https(
      { ...TLS.server, ca: TLS.ca, requestCert: true, rejectUnauthorized: true },
      (request, response) => {
        const { subject } = (request.socket as TLSSocket).getPeerCertificate()
        response.end(String(subject.CN))
      },
    )
    const client = { ...CA, clientCertFile: file('client.pem'), clientKeyFile: file('client.key') }
    expect(await get(backendOf(origin, { targetTls: client }))).toBe('client')
    expect(await codeOf(get(backendOf(origin, { targetTls: CA })))).not.toBe('client')
  })

  it('takes up a file that changed with the next connection, and keeps the old while it cannot be read', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'backend-'))
    const caCertPath = join(directory, 'ca.pem')
    try {
      cpSync(file('other-ca.pem'), caCertPath)
      const origin = await sockets.https(TLS.server, (_request, response) => {
        response.writeHead(200, { connection: 'close' }).end('hello')
      })
      const backend = backendOf(origin, { targetTls: { caCertPath } })
      expect(await codeOf(get(backend))).not.toBe('hello')
      writeFileSync(caCertPath, TLS.ca)
      expect(await codeOf(get(backend))).toBe('hello')
      rmSync(caCertPath)
      expect(await codeOf(get(backend))).toBe('hello')
    } finally {
      rmSync(directory, { recursive: true })
    }
  })

  it('with a file that is missing at the start is a configuration error', () => {
    const make = () =>
      createBackend({
        origin: 'https://a',
        timeouts: { connect: 1, firstByte: 0, idle: 0 },
        http2: false,
        targetTls: { caCertPath: '/nowhere' },
      })
    expect(make).toThrow(Failure)
    expect(make).toThrow(/config_error/)
  })
})

describe('HTTP/2 towards a backend', () => {
  const serveH2 = async (): Promise<{ origin: string; versions: string[]; sessions: () => number }> => {
    const versions: string[] = []
    let sessions = 0
    const server = createSecureServer({ ...TLS.server, allowHTTP1: true }, (request, response) => {
      versions.push(request.httpVersion)
      setTimeout(() => response.end(`h${request.httpVersion} ${request.url}`), 5)
    })
    server.on('session', () => sessions++)
    return { origin: `https://${await sockets.listen(server)}`, versions, sessions: () => sessions }
  }

  it('is spoken only where it was asked for', async () => {
    const { origin } = await serveH2()
    expect(await get(backendOf(origin, { targetTls: CA, http2: true }), '/a%2Fb?c')).toBe('h2.0 /a%2Fb?c')
    expect(await get(backendOf(origin, { targetTls: CA }), '/')).toBe('h1.1 /')
  })

  it('shares one connection', async () => {
    const { origin, sessions } = await serveH2()
    const backend = backendOf(origin, { targetTls: CA, http2: true })
    await Promise.all(Array.from({ length: 20 }, () => get(backend)))
    expect(sessions()).toBe(1)
  })

  it('falls back to HTTP/1.1 where the backend has no other', async () => {
    const origin = await sockets.https(TLS.server, (request, response) => response.end(request.httpVersion))
    const backend = backendOf(origin, { targetTls: CA, http2: true })
    expect(await Promise.all(Array.from({ length: 5 }, () => get(backend)))).toEqual(Array(5).fill('1.1'))
  })
})

describe('a request that is aborted before there is a connection', () => {
  it.each([
    ['to a backend that takes no part in TLS', (silent: string) => ({ origin: silent.replace('http', 'https') })],
    [
      'through an egress proxy that answers nothing',
      (silent: string) => ({ origin: 'https://backend.test', egressProxy: { httpsProxy: silent } }),
    ],
    ['for HTTP/2', (silent: string) => ({ origin: silent.replace('http', 'https'), http2: true })],
  ])('is over at once: %s', async (_what, options) => {
    let open = 0
    const silent = await sockets.tcp((socket) => {
      open++
      socket
        .on('close', () => open--)
        .on('end', () => socket.end())
        .resume()
    })
    const backend = backendOf('', { ...options(silent), timeouts: { connect: 60_000, firstByte: 0, idle: 0 } })
    const errors: unknown[] = []
    const handler = {
      onRequestStart() {},
      onResponseStart() {},
      onResponseData() {},
      onResponseEnd() {},
      onResponseError: (_control: unknown, error: Error) => void errors.push(error.message),
    }
    const request = { method: 'POST', path: '/', headers: [], body: Buffer.from('{}') }
    const control = backend.exchanges.dispatch(request, handler)
    await expect.poll(() => open).toBe(1)
    control?.abort(new Error('gone'))
    expect(errors).toEqual(['gone'])
    // The request in undici continues, without the body.
    if (!('http2' in options(silent))) await expect.poll(() => open).toBe(0)
    await backend.destroy()
    expect(errors).toEqual(['gone'])
  })
})

describe('closing', () => {
  it('waits for what is running and sends nothing new', async () => {
    let answer = (): void => undefined
    const origin = await sockets.http((_request, response) => {
      answer = () => response.end('late')
      response.flushHeaders()
    })
    const backend = backendOf(origin)
    const running = await ask(backend.exchanges, { method: 'GET', path: '/' })
    const closed = backend.close()
    expect(await codeOf(get(backend))).toBe('WIRE_POOL_CLOSED')
    answer()
    expect(await running.text).toBe('late')
    await closed
  })
})
