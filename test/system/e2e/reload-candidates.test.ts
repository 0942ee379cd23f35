import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { authConfig, freePort, proxyConfig, run, type RunningTestProxy } from '../../support/e2e/run.ts'

/** An issuer that only counts who asks. */
async function startIssuer() {
  let asked = 0
  const server = createServer((_request, response) => {
    asked++
    response.writeHead(404).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const close = async (): Promise<void> => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  return { url: `http://127.0.0.1:${port}`, asked: () => asked, close }
}

let issuer: Awaited<ReturnType<typeof startIssuer>>
let proxy: RunningTestProxy
let target: string
beforeEach(async () => {
  issuer = await startIssuer()
  target = `http://127.0.0.1:${await freePort()}/`
})
afterEach(async () => {
  await proxy.close()
  await issuer.close()
})

const key = (name: string): string =>
  authConfig(name, {
    type: 'headerInjection',
    headerInjection: { headerName: 'X-Api-Key', valueSecretRef: { name, key: 'key' } },
  })
const callers = () => ({
  mode: 'oauth',
  oauth: {
    resourceUrl: 'https://mcp.example.com/b',
    providers: [{ name: 'new', issuerUrl: issuer.url, audience: 'mcp' }],
  },
})
const route = (name: string, more: object = {}): object => ({
  name,
  path: `/${name}`,
  target,
  externalAuthConfigRef: { name },
  ...more,
})

/** A configuration with the routes `a` (as it is) and `b`, whose callers come from the issuer. */
const withIssuer = (more: object = {}): string =>
  proxyConfig({
    auth: { mode: 'anonymous' },
    routes: [route('a', more), route('b', { auth: callers() })],
  })
const start = async () => {
  const only = proxyConfig({ auth: { mode: 'anonymous' }, routes: [route('a')] })
  proxy = await run({ 'a.json': key('a'), 'b.json': key('b'), 'proxy.json': only, 'secrets/a/key': 'one' })
}
const loads = (name: string): number =>
  proxy.log.lines.filter((line) => line.includes(`"secret":"${name}/key"`) && line.endsWith('secret loaded')).length

describe('a reload', () => {
  it('that is refused has asked no new issuer', async () => {
    await start()
    await proxy.write('secrets/b/key', 'one')
    // A failure at the end of the build: the routes before it are built already.
    const broken = { targetTls: { caCertPath: 'missing.pem' } }
    await proxy.write(
      'proxy.json',
      proxyConfig({
        auth: { mode: 'anonymous' },
        routes: [route('b', { auth: callers() }), route('a', { ...broken, target: target.replace('http:', 'https:') })],
      }),
    )
    expect(await proxy.reload()).toEqual({ ok: false, problems: [expect.stringContaining('targetTls')] })
    // Requests of other callers arrive in the meantime.
    for (let question = 1; question <= 20; question++) {
      await (await fetch(issuer.url)).text()
      expect(issuer.asked()).toBe(question)
    }
  })

  it('that is accepted asks it at once', async () => {
    await start()
    await proxy.write('secrets/b/key', 'one')
    await proxy.write('proxy.json', withIssuer())
    expect(await proxy.reload()).toEqual({ ok: true })
    await vi.waitFor(() => expect(issuer.asked()).toBeGreaterThan(0), 10_000)
    // Its documents have several places, which are tried one after the other.
    let asked = 0
    while (asked !== issuer.asked()) {
      asked = issuer.asked()
      await new Promise((resolve) => setTimeout(resolve, 500))
    }
    // A kept one is not asked again.
    await proxy.write('proxy.json', withIssuer({ timeouts: { connect: '4s' } }))
    expect(await proxy.reload()).toEqual({ ok: true })
    expect(issuer.asked()).toBe(asked)
  })

  it('that removes an identity provider takes its figures along, also those of its circuits', async () => {
    await start()
    await proxy.write('secrets/b/key', 'one')
    await proxy.write('proxy.json', withIssuer())
    expect(await proxy.reload()).toEqual({ ok: true })
    const named = async (): Promise<string[]> => {
      const text = await (await fetch(`${proxy.adminUrl}/metrics`)).text()
      return text.split('\n').filter((line) => /name="new( |")/.test(line))
    }
    await vi.waitFor(async () => {
      const text = (await named()).join('\n')
      expect(text).toContain('extauth_provider_requests_total')
      expect(text).toContain('extauth_provider_keys')
      expect(text).toContain('extauth_breaker_state')
    }, 10_000)
    await proxy.write('proxy.json', proxyConfig({ auth: { mode: 'anonymous' }, routes: [route('a')] }))
    expect(await proxy.reload()).toEqual({ ok: true })
    await vi.waitFor(async () => expect(await named()).toEqual([]), 10_000)
  })

  it('that removes a secret stops watching it', async () => {
    await start()
    await proxy.write('secrets/b/key', 'one')
    await proxy.write('proxy.json', proxyConfig({ auth: { mode: 'anonymous' }, routes: [route('a'), route('b')] }))
    expect(await proxy.reload()).toEqual({ ok: true })
    expect(loads('b')).toBe(1)
    await proxy.write('proxy.json', proxyConfig({ auth: { mode: 'anonymous' }, routes: [route('a')] }))
    expect(await proxy.reload()).toEqual({ ok: true })
    await proxy.write('secrets/b/key', 'two')
    await proxy.write('secrets/a/key', 'two')
    await vi.waitFor(() => expect(loads('a')).toBe(2), 10_000)
    expect(loads('b')).toBe(1)
  })
})
