import { afterEach, describe, expect, it } from 'vitest'
import { type Credential, type HeaderCredential, NO_CREDENTIAL, Secret } from '../../../src/core/index.ts'
import { createSockets } from '../../support/sockets.ts'
import { rawConnect } from '../../support/raw.ts'
import { startFront } from '../../support/forward/front.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const VALUE = 'the/credential+of=this:route'
const bearerOf = (token: string): Credential => ({
  kind: 'header',
  name: 'authorization',
  value: new Secret(`Bearer ${token}`),
})
const bearer = bearerOf(VALUE)
const key: Credential = { kind: 'header', name: 'x-api-key', value: new Secret(VALUE) }
const aws: Credential = {
  kind: 'aws',
  accessKeyId: 'AKIAEXAMPLE',
  secretAccessKey: new Secret('secret-access-key'),
  sessionToken: new Secret(VALUE),
  region: 'eu-central-1',
  service: 'mcp',
  signing: { day: '', key: undefined },
}

/** A backend that says in its answer what it was sent. */
const talkative = (headers: Record<string, string | string[]>, status = 200): Promise<string> =>
  sockets.http((_request, response) => response.writeHead(status, headers).end('ok'))

describe('an answer that holds the credential of the request', () => {
  it.each([
    ['a bearer', bearer],
    ['a header', key],
    ['a session token', aws],
  ])('loses the lines with %s', async (_, credential) => {
    const origin = await talkative({
      'x-echo': `you sent ${VALUE}`,
      'x-encoded': `/?k=${encodeURIComponent(VALUE)}`,
      'x-lines': ['one', VALUE, 'two'],
      'x-other': 'kept',
    })
    const { url } = await startFront(sockets, { origin, credential })
    const { status, headers } = await fetch(url)
    expect(status).toBe(200)
    expect(headers.get('x-echo')).toBeNull()
    expect(headers.get('x-encoded')).toBeNull()
    expect(headers.get('x-lines')).toBe('one, two')
    expect(headers.get('x-other')).toBe('kept')
  })

  it('loses the lines with a secret that is not ASCII, however its bytes are written', async () => {
    const secret = 'geheim-schlüssel-ключ'
    const bytes = (text: string) => Buffer.from(text, 'utf8').toString('latin1')
    const credential: Credential = { kind: 'header', name: 'x-api-key', value: new Secret(bytes(secret)) }
    const origin = await sockets.tcp((socket) => {
      const lines = {
        bytes: bytes(secret),
        encoded: encodeURIComponent(secret),
        twice: bytes(bytes(secret)),
        other: 'kept',
      }
      const head = Object.entries(lines).map(([name, value]) => `x-${name}: got ${value}\r\n`)
      socket.once('data', () => socket.end(`HTTP/1.1 200 OK\r\ncontent-length: 0\r\n${head.join('')}\r\n`, 'latin1'))
    })
    const { headers } = await fetch((await startFront(sockets, { origin, credential })).url)
    expect(['x-bytes', 'x-encoded', 'x-twice', 'x-other'].map((name) => headers.get(name))).toEqual([
      null,
      null,
      null,
      'got kept',
    ])
  })

  it('loses the lines with a secret that is sent beside it, and keeps what was no secret', async () => {
    const second: HeaderCredential = { kind: 'header', name: 'x-api-key', value: new Secret(VALUE) }
    const tenant: HeaderCredential = {
      kind: 'header',
      name: 'x-tenant',
      value: new Secret('tenant-of-ours'),
      isPlain: true,
    }
    const origin = await talkative({ 'x-echo': `you sent ${VALUE}`, 'x-tenant': 'tenant-of-ours' })
    for (const credential of [NO_CREDENTIAL, bearerOf('another-credential')]) {
      const { url } = await startFront(sockets, { origin, credential, forwarded: [tenant, second] })
      const { headers } = await fetch(url)
      expect([headers.get('x-echo'), headers.get('x-tenant')]).toEqual([null, 'tenant-of-ours'])
    }
  })

  it('loses its Location', async () => {
    const origin = await talkative({ location: `/login?token=${VALUE}` }, 302)
    const { url } = await startFront(sockets, { origin, credential: bearer })
    const { status, headers } = await fetch(url, { redirect: 'manual' })
    expect([status, headers.get('location')]).toEqual([302, null])
  })

  it('loses the hints that hold it', async () => {
    const origin = await sockets.tcp((socket) => {
      const hints = `Link: </a.css>; rel=preload\r\nLink: </${VALUE}>; rel=preload\r\n`
      socket.once('data', () =>
        socket.end(`HTTP/1.1 103 Early Hints\r\n${hints}\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok`),
      )
    })
    const { url } = await startFront(sockets, { origin, credential: bearer })
    const text = await rawConnect(url, 'GET / HTTP/1.1\r\nhost: us\r\n\r\n').until(/ok$/)
    expect(text).toContain('</a.css>')
    expect(text).not.toContain(VALUE)
  })

  it('is left alone where no credential was set', async () => {
    const origin = await talkative({ 'x-echo': VALUE })
    const { url } = await startFront(sockets, { origin })
    expect((await fetch(url)).headers.get('x-echo')).toBe(VALUE)
  })
})
