import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { RequestListener } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createSockets } from '../../support/sockets.ts'
import { TLS } from '../../support/tls.ts'
import { rsaKey, signed } from '../../support/authenticate/keys.ts'
import { keysListener, networked } from '../../support/authenticate/network.ts'
import { AUDIENCE, callerOf, refusalOf } from '../../support/authenticate/world.ts'

const key = await rsaKey({ kid: 'one' })
const sockets = createSockets()
let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'extauth-'))
})
afterEach(async () => {
  await sockets.closeAll()
  rmSync(directory, { recursive: true, force: true })
})

const serveKeys = keysListener([key])
const tokenOf = (iss: string, nowMs = Date.now()) =>
  signed(
    key,
    { alg: 'RS256', kid: 'one' },
    { iss, aud: AUDIENCE, sub: 'alice', exp: nowMs / 1000 + 60, jti: Math.random() },
  )
const entry = (origin: string, more: object = {}) => ({
  name: 'real',
  issuerUrl: origin,
  audience: AUDIENCE,
  jwksUrl: `${origin}/jwks`,
  ...more,
})
const file = (name: string, content: Buffer | string) => {
  writeFileSync(join(directory, name), content)
  return join(directory, name)
}

describe('TLS to a provider', () => {
  it('trusts the CA of caCertPath', async () => {
    const origin = await sockets.https(TLS.server, serveKeys)
    const authenticator = sockets.closing(networked([entry(origin, { caCertPath: file('ca.pem', TLS.ca) })]))
    expect((await callerOf(authenticator, await tokenOf(origin))).subject).toBe('alice')
  })

  it('refuses a certificate of another CA, and one of the system roots stands in for neither', async () => {
    const origin = await sockets.https(TLS.otherServer, serveKeys)
    for (const more of [{ caCertPath: file('ca.pem', TLS.ca) }, {}]) {
      const authenticator = sockets.closing(networked([entry(origin, more)]))
      expect((await refusalOf(authenticator, await tokenOf(origin))).status).toBe(503)
    }
  })

  it('takes a new CA from the file', async () => {
    const origin = await sockets.https(TLS.otherServer, serveKeys)
    const caCertPath = file('ca.pem', TLS.ca)
    let nowMs = Date.now()
    const clock = { now: () => nowMs }
    const authenticator = sockets.closing(networked([entry(origin, { caCertPath })], { clock }))
    expect((await refusalOf(authenticator, await tokenOf(origin))).status).toBe(503)
    file('ca.pem', TLS.otherCa)
    await expect
      .poll(
        async () => {
          nowMs += 30_000
          return callerOf(authenticator, await tokenOf(origin, nowMs)).then(
            (caller) => caller.subject,
            () => 'refused',
          )
        },
        { timeout: 10_000 },
      )
      .toBe('alice')
  })
})

describe('a provider that', () => {
  it.each<[string, RequestListener, number]>([
    ['answers HTML', (_request, response) => void response.setHeader('content-type', 'text/html').end('<html>'), 502],
    ['answers 10 MiB', (_request, response) => void response.end(Buffer.alloc(10 * 1024 * 1024, ' ')), 502],
    [
      'announces 10 MiB',
      (_request, response) => response.writeHead(200, { 'content-length': 10485760 }).flushHeaders(),
      502,
    ],
    [
      'redirects to another origin',
      (_request, response) => void response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(),
      502,
    ],
    [
      'redirects to itself forever',
      (_request, response) => void response.writeHead(302, { location: '/jwks' }).end(),
      502,
    ],
    ['is overloaded', (_request, response) => void response.writeHead(429, { 'retry-after': '7' }).end(), 503],
    ['never answers', () => undefined, 503],
    ['answers a byte at a time', (_request, response) => drip(response), 503],
    ['hangs up', (request) => void request.socket.destroy(), 503],
  ])('%s is not reported as the caller’s fault', async (_name, listener, status) => {
    const origin = await sockets.http(listener)
    const authenticator = sockets.closing(networked([entry(origin)], { deadlineMs: 300 }))
    const started = performance.now()
    expect((await refusalOf(authenticator, await tokenOf(origin))).status).toBe(status)
    expect(performance.now() - started).toBeLessThan(3000)
  })

  it('is down is 503, and good again when it is back', async () => {
    let isUp = false
    const origin = await sockets.http((request, response) => {
      if (isUp) serveKeys(request, response)
      else request.socket.destroy()
    })
    let nowMs = Date.now()
    const authenticator = sockets.closing(networked([entry(origin)], { clock: { now: () => nowMs } }))
    expect((await refusalOf(authenticator, await tokenOf(origin))).status).toBe(503)
    isUp = true
    nowMs += 30_000
    expect((await callerOf(authenticator, await tokenOf(origin))).subject).toBe('alice')
  })

  it('hangs delays only its own tokens', async () => {
    const hanging = await sockets.http(() => undefined)
    const healthy = await sockets.http(serveKeys)
    const authenticator = sockets.closing(networked([entry(hanging), entry(healthy)], { deadlineMs: 2000 }))
    const slow = refusalOf(authenticator, await tokenOf(hanging))
    const started = performance.now()
    for (let count = 0; count < 20; count++) await callerOf(authenticator, await tokenOf(healthy))
    expect(performance.now() - started).toBeLessThan(1500)
    expect((await slow).status).toBe(503)
  })
})

describe('the addresses of a provider', () => {
  /** How often anybody connected, and an origin whose host is a name. */
  const listening = async () => {
    const counter = { connections: 0 }
    const origin = await sockets.http((request, response) => {
      counter.connections += 1
      serveKeys(request, response)
    })
    return { counter, port: new URL(origin).port }
  }

  it.each([
    ['loopback', '127.0.0.1'],
    ['loopback in IPv6', '::1'],
    ['loopback, mapped', '::ffff:127.0.0.1'],
    ['private', '10.0.0.1'],
    ['link-local', '169.254.169.254'],
    ['unspecified', '0.0.0.0'],
  ])('may not be %s', async (_name, address) => {
    const { counter, port } = await listening()
    const origin = `http://idp.test:${port}`
    const allowed = { insecureAllowHttp: true }
    const authenticator = sockets.closing(
      networked([entry(origin, allowed)], { resolver: () => Promise.resolve([address]) }),
    )
    expect((await refusalOf(authenticator, await tokenOf(origin))).status).toBe(503)
    expect(counter.connections).toBe(0)
  })

  it('are checked at connect time: a name that changes between check and connect reaches nothing', async () => {
    const { counter, port } = await listening()
    const origin = `http://idp.test:${port}`
    const answers = [['203.0.113.9'], ['127.0.0.1']]
    let asked = 0
    const resolver = () => Promise.resolve(answers[Math.min(asked++, 1)] ?? [])
    const authenticator = sockets.closing(
      networked([entry(origin, { insecureAllowHttp: true })], { resolver, deadlineMs: 500 }),
    )
    expect((await refusalOf(authenticator, await tokenOf(origin))).status).toBe(503)
    expect(asked).toBe(1)
    expect(counter.connections).toBe(0)
  })

  it('may be private with allowPrivateIP, but never those of cloud metadata', async () => {
    const origin = 'http://idp.test'
    const more = { allowPrivateIP: true, insecureAllowHttp: true }
    const resolver = () => Promise.resolve(['169.254.169.254'])
    const authenticator = sockets.closing(networked([entry(origin, more)], { resolver, deadlineMs: 500 }))
    expect(await refusalOf(authenticator, await tokenOf(origin))).toMatchObject({
      detail: 'identity provider: blocked_address',
    })
  })
})

function drip(response: Parameters<RequestListener>[1]): void {
  response.writeHead(200)
  const timer = setInterval(() => response.write(' '), 50)
  response.on('close', () => clearInterval(timer))
}
