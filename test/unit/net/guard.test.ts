import type { AddressInfo } from 'node:net'
import { createServer } from 'node:http'
import { afterEach, describe, expect, it } from 'vitest'
import { OutboundError, classifyAddress } from '../../../src/core/index.ts'
import { createOutbound, type OutboundOptions } from '../../../src/net/index.ts'
import { createSockets } from '../../support/sockets.ts'
import { TLS } from '../../support/tls.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const outcome = async (options: Partial<OutboundOptions>, url: string): Promise<number | string> => {
  const client = sockets.closing(createOutbound({ name: 'idp', clock: Date, deadlineMs: 500, ...options }))
  try {
    return (await client.request({ method: 'GET', url })).status
  } catch (error) {
    return error instanceof OutboundError ? error.kind : String(error)
  }
}
/** The verdict of the guard alone: nothing listens on port 1, so allowed addresses are unreachable. */
const verdict = async (host: string, allowPrivateIP: boolean, configured: string): Promise<string> => {
  const guard = { allowPrivateIP, configuredUrls: [configured] }
  // The system resolves a name, which takes a while on a busy machine; only two rows wait for the deadline.
  const seen = await outcome({ guard, deadlineMs: 1_000 }, `http://${host}:1/`)
  return seen === 'blocked_address' ? 'blocked' : 'tried'
}

describe('what an address is', () => {
  it.each([
    // Cloud metadata and link-local, in every way to write them.
    ['169.254.169.254', 'metadata'],
    ['169.254.0.1', 'metadata'],
    ['169.254.255.255', 'metadata'],
    ['100.100.100.200', 'metadata'],
    ['168.63.129.16', 'metadata'],
    ['fd00:ec2::254', 'metadata'],
    ['fe80::1', 'metadata'],
    ['fe80::1%eth0', 'metadata'],
    ['febf::1', 'metadata'],
    ['::ffff:169.254.169.254', 'metadata'],
    ['::ffff:a9fe:a9fe', 'metadata'],
    ['0:0:0:0:0:ffff:a9fe:a9fe', 'metadata'],
    ['64:ff9b::169.254.169.254', 'metadata'],
    ['64:ff9b::a9fe:a9fe', 'metadata'],
    ['64:ff9b::6464:64c8', 'metadata'],
    ['::169.254.169.254', 'metadata'],
    ['::ffff:0:a9fe:a9fe', 'metadata'],
    ['2002:a9fe:a9fe::1', 'metadata'],
    ['0.0.0.0', 'metadata'],
    ['0.1.2.3', 'metadata'],
    ['::', 'metadata'],
    ['::ffff:0.0.0.0', 'metadata'],
    ['nonsense', 'metadata'],
    ['', 'metadata'],
    // This machine.
    ['127.0.0.1', 'loopback'],
    ['127.255.255.254', 'loopback'],
    ['::1', 'loopback'],
    ['0:0:0:0:0:0:0:1', 'loopback'],
    ['::ffff:127.0.0.1', 'loopback'],
    ['64:ff9b::7f00:1', 'loopback'],
    // Private and special.
    ['10.0.0.1', 'private'],
    ['172.16.0.1', 'private'],
    ['172.31.255.255', 'private'],
    ['192.168.1.1', 'private'],
    ['100.64.0.1', 'private'],
    ['100.127.255.255', 'private'],
    ['192.0.0.8', 'private'],
    ['198.18.0.1', 'private'],
    ['203.0.113.7', 'private'],
    ['224.0.0.1', 'private'],
    ['255.255.255.255', 'private'],
    ['fc00::1', 'private'],
    ['fd12:3456::1', 'private'],
    ['fec0::1', 'private'],
    ['ff02::1', 'private'],
    ['2001:db8::1', 'private'],
    ['2001:0:1::1', 'private'],
    ['64:ff9b:1::1', 'private'],
    ['::ffff:10.0.0.1', 'private'],
    ['::ffff:c0a8:101', 'private'],
    ['64:ff9b::10.0.0.1', 'private'],
    ['2002:c0a8:0101::', 'private'],
    // Public.
    ['1.1.1.1', 'public'],
    ['172.32.0.1', 'public'],
    ['172.15.255.255', 'public'],
    ['100.128.0.1', 'public'],
    ['169.253.255.255', 'public'],
    ['168.63.129.17', 'public'],
    ['2606:4700::1111', 'public'],
    ['::ffff:1.1.1.1', 'public'],
    ['64:ff9b::1.1.1.1', 'public'],
  ])('%s is %s', (address, expected) => {
    expect(classifyAddress(address)).toBe(expected)
  })
})

describe('what the guard lets through', () => {
  const PUBLIC = 'https://idp.example/'
  it.each([
    ['127.0.0.1', false, 'http://127.0.0.1:9/', 'tried'],
    ['[::1]', false, 'http://localhost/', 'tried'],
    ['localhost', false, 'http://127.0.0.1/', 'tried'],
    ['127.0.0.1', false, PUBLIC, 'blocked'],
    ['127.0.0.1', true, PUBLIC, 'blocked'],
    ['localhost', true, PUBLIC, 'blocked'],
    ['2130706433', true, PUBLIC, 'blocked'],
    ['0x7f.1', true, PUBLIC, 'blocked'],
    ['[::ffff:127.0.0.1]', true, PUBLIC, 'blocked'],
    ['0.0.0.0', true, 'http://localhost/', 'blocked'],
    ['10.255.255.1', false, 'http://10.255.255.1/', 'blocked'],
    ['10.255.255.1', true, PUBLIC, 'tried'],
    ['[::ffff:10.255.255.1]', false, PUBLIC, 'blocked'],
    ['[64:ff9b::10.0.0.1]', false, PUBLIC, 'blocked'],
    ['169.254.169.254', true, 'http://169.254.169.254/', 'blocked'],
    ['[fe80::1]', true, PUBLIC, 'blocked'],
    ['100.100.100.200', true, PUBLIC, 'blocked'],
  ])('%s with allowPrivateIP %s and %s configured is %s', async (host, allowPrivateIP, configured, expected) => {
    expect(await verdict(host, allowPrivateIP, configured)).toBe(expected)
  })

  it('lets everything through where there is no guard', async () => {
    const url = await sockets.http((_request, response) => response.writeHead(204).end())
    expect(await outcome({}, url)).toBe(204)
  })
})

describe('names', () => {
  const serveTls = async (listenFor: { cert: Buffer; key: Buffer }): Promise<string> =>
    new URL(await sockets.https(listenFor, (request, response) => response.writeHead(200).end(request.headers.host)))
      .port
  const caCert = () => TLS.ca

  it('that resolve to a mixture reach the allowed addresses only', async () => {
    const server = createServer((_request, response) => response.writeHead(204).end())
    const port = (await sockets.listen(server)).split(':')[1] ?? ''
    const guard = { allowPrivateIP: false, configuredUrls: [`http://localhost:${port}`] }
    const resolver = async () => ['10.0.0.1', '169.254.169.254', '127.0.0.1']
    expect((server.address() as AddressInfo).port).toBe(Number(port))
    expect(await outcome({ guard, resolver }, `http://localhost:${port}/`)).toBe(204)
  })

  it('are resolved once: a second answer for the same connection cannot lead elsewhere', async () => {
    const reached: string[] = []
    const url = await sockets.http((_request, response) => {
      reached.push('internal')
      response.end()
    })
    const answers = [['203.0.113.9'], ['127.0.0.1']]
    let asked = 0
    const resolver = async () => answers[Math.min(asked++, 1)] ?? []
    const guard = { allowPrivateIP: true, configuredUrls: ['https://idp.test'] }
    const seen = await outcome({ guard, resolver, deadlineMs: 150 }, `http://idp.test:${new URL(url).port}/`)
    expect([seen === 'timeout' || seen === 'unreachable', asked, reached]).toEqual([true, 1, []])
    // The next connection asks again, and the address that moved to loopback is refused.
    expect(await outcome({ guard, resolver }, `http://idp.test:${new URL(url).port}/`)).toBe('blocked_address')
    expect(reached).toEqual([])
  })

  it('try the next allowed address when the first does not answer', async () => {
    const url = await sockets.http((_request, response) => response.writeHead(204).end())
    const resolver = async () => ['::1', '127.0.0.1']
    const guard = { allowPrivateIP: false, configuredUrls: ['http://localhost'] }
    expect(await outcome({ guard, resolver }, `http://localhost:${new URL(url).port}/`)).toBe(204)
  })

  it('that do not resolve are unreachable, and those without addresses are blocked', async () => {
    const guard = { allowPrivateIP: true, configuredUrls: [] }
    const missing = () => Promise.reject(Object.assign(new Error('no such name'), { code: 'ENOTFOUND' }))
    expect(await outcome({ guard, resolver: missing }, 'http://idp.test/')).toBe('unreachable')
    expect(await outcome({ guard, resolver: async () => [] }, 'http://idp.test/')).toBe('blocked_address')
  })

  it('are what the certificate is checked for, not the address that was connected to', async () => {
    const port = await serveTls(TLS.server)
    const resolver = async () => ['127.0.0.1']
    expect(await outcome({ resolver, caCert }, `https://idp.test:${port}/`)).toBe(200)
    expect(await outcome({ resolver, caCert }, `https://elsewhere.test:${port}/`)).toBe('unreachable')
    expect(await outcome({ caCert }, `https://127.0.0.1:${port}/`)).toBe(200)
  })
})

describe('the configured certificate', () => {
  const resolver = async () => ['127.0.0.1']

  it('replaces the system roots and is taken up when it changes', async () => {
    const url = await sockets.https(TLS.server, (_request, response) => response.writeHead(204).end())
    let ca: Buffer | undefined = TLS.otherCa
    const client = sockets.closing(createOutbound({ name: 'idp', clock: Date, resolver, caCert: () => ca }))
    const status = () =>
      client.request({ method: 'GET', url }).then(
        (answer) => answer.status,
        (error: unknown) => (error as OutboundError).kind,
      )
    expect(await status()).toBe('unreachable')
    ca = TLS.ca
    expect(await status()).toBe(204)
    ca = Buffer.from(TLS.ca)
    expect(await status()).toBe(204)
    ca = TLS.otherCa
    expect(await status()).toBe('unreachable')
    ca = undefined
    expect(await status()).toBe('unreachable')
  })

  it('is not needed for nothing: without it a private authority is refused', async () => {
    const url = await sockets.https(TLS.server, (_request, response) => response.end())
    expect(await outcome({}, url)).toBe('unreachable')
  })
})
