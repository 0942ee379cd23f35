import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer, connect } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { connect as tlsConnect, type TLSSocket } from 'node:tls'
import { spawnSync } from 'node:child_process'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { request as httpRequest } from 'node:http'
import { createSockets } from '../../support/sockets.ts'
import { TLS } from '../../support/tls.ts'
import { createRoute, headersIn, runtimeOf, startProxy, startRawBackend } from '../../support/proxy/harness.ts'

const sockets = createSockets()
let directory: string
beforeEach(() => {
  directory = mkdtempSync(path.join(tmpdir(), 'extauth-'))
})
afterEach(async () => {
  await sockets.closeAll()
  rmSync(directory, { recursive: true })
})

const serve = async (listen: Parameters<typeof startProxy>[2]) => {
  const backend = await startRawBackend(sockets)
  return { backend, proxy: await startProxy(sockets, runtimeOf([createRoute(sockets, backend.origin)]), listen) }
}

const overUnix = (socketPath: string): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    httpRequest({ socketPath, path: '/', headers: { host: 'anything' } }, (response) => {
      response.resume()
      resolve(response.statusCode)
    })
      .on('error', reject)
      .end()
  })

describe('addresses', () => {
  it('says which port it took', async () => {
    const { proxy } = await serve({ address: '127.0.0.1:0' })
    expect(proxy.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    expect((await fetch(proxy.url)).status).toBe(200)
  })

  it('listens everywhere when there is no host', async () => {
    const { proxy } = await serve({ address: ':0' })
    expect((await fetch(proxy.url.replace('localhost', '127.0.0.1'))).status).toBe(200)
  })

  it('says that a port is taken', async () => {
    const { proxy } = await serve({})
    await expect(serve({ address: new URL(proxy.url).host })).rejects.toMatchObject({
      code: 'config_error',
      detail: `cannot listen on ${new URL(proxy.url).host}: EADDRINUSE`,
      cause: { code: 'EADDRINUSE' },
    })
  })

  it('does not read what is no address', async () => {
    await expect(serve({ address: 'nowhere' })).rejects.toMatchObject({ code: 'config_error' })
  })
})

describe('Unix sockets', () => {
  it('lets owner and group in, any Host will do, and the socket goes when the proxy does', async () => {
    const file = path.join(directory, 'a.sock')
    const { proxy, backend } = await serve({ address: `unix:${file}` })
    expect(proxy.url).toBe(`unix:${file}`)
    expect(statSync(file).mode & 0o777).toBe(0o660)
    expect(await overUnix(file)).toBe(200)
    expect(headersIn(backend.received[0])).toContainEqual(['x-forwarded-for', 'unknown'])
    await proxy.drain(0)
    expect(() => statSync(file)).toThrow('ENOENT')
  })

  it('replaces a socket without a listener', async () => {
    const file = path.join(directory, 'a.sock')
    const script = `require('net').createServer().listen(${JSON.stringify(file)}, () => process.kill(process.pid, 'SIGKILL'))`
    spawnSync(process.execPath, ['-e', script])
    expect(statSync(file).isSocket()).toBe(true)
    await serve({ address: `unix:${file}` })
    expect(await overUnix(file)).toBe(200)
  })

  it('does not take over one that is in use, nor a file', async () => {
    const file = path.join(directory, 'a.sock')
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(file, resolve))
    sockets.closing(server)
    await expect(serve({ address: `unix:${file}` })).rejects.toMatchObject({ code: 'config_error' })
    // Still in use: it accepts a connection.
    const client = connect(file)
    await new Promise((resolve, reject) => client.once('connect', resolve).once('error', reject))
    client.on('error', () => undefined).destroy()
    const plain = path.join(directory, 'plain')
    writeFileSync(plain, 'kept')
    await expect(serve({ address: `unix:${plain}` })).rejects.toMatchObject({ code: 'config_error' })
    expect(statSync(plain).size).toBe(4)
  })
})

describe('TLS', () => {
  const material = () => {
    let current: { cert: Buffer; key: Buffer } = TLS.server
    const listeners = new Set<() => void>()
    return {
      current: () => current,
      onChange: (listener: () => void) => {
        listeners.add(listener)
        return () => listeners.delete(listener)
      },
      set: (next: { cert: Buffer; key: Buffer }) => {
        current = next
        for (const listener of listeners) listener()
      },
      listeners,
    }
  }

  const peerOf = (url: string, options: object = {}): Promise<TLSSocket> =>
    new Promise((resolve, reject) => {
      const { hostname, port } = new URL(url)
      const socket = tlsConnect({ host: hostname, port: Number(port), rejectUnauthorized: false, ...options })
      socket.once('secureConnect', () => resolve(socket)).once('error', reject)
    })

  it('serves, says so to the backend, and takes a new certificate without a restart', async () => {
    const tls = material()
    const { proxy, backend } = await serve({ tls })
    expect(proxy.url).toMatch(/^https:/)
    const first = await peerOf(proxy.url)
    const before = first.getPeerCertificate().fingerprint256
    first.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await new Promise((resolve) => first.once('data', resolve))
    expect(headersIn(backend.received[0])).toContainEqual(['x-forwarded-proto', 'https'])

    tls.set(TLS.otherServer)
    const second = await peerOf(proxy.url)
    const after = second.getPeerCertificate().fingerprint256
    expect(after).not.toBe(before)

    tls.set({ cert: Buffer.from('broken'), key: Buffer.from('broken') })
    const third = await peerOf(proxy.url)
    expect(third.getPeerCertificate().fingerprint256).toBe(after)
    expect(proxy.log.lines.join()).toContain('new listener certificate is invalid')
    // The first connection still stands.
    first.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await new Promise((resolve) => first.once('data', resolve))
    for (const socket of [first, second, third]) socket.destroy()
    await proxy.drain(0)
    expect(tls.listeners.size).toBe(0)
  })

  it('speaks TLS 1.2 at least', async () => {
    const { proxy } = await serve({ tls: material() })
    await expect(peerOf(proxy.url, { minVersion: 'TLSv1', maxVersion: 'TLSv1.1' })).rejects.toThrow(
      /protocol version|unsupported protocol|no protocols|alert/i,
    )
  })
})
