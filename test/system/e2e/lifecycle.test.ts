import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { INITIALIZE, post } from '../../support/e2e/lab.ts'
import { authConfig, proxyConfig, run, type RunningTestProxy } from '../../support/e2e/run.ts'

/** A backend that answers when the test says so. */
let backend: Server
let waiting: ServerResponse[] = []
let target: string
let proxy: RunningTestProxy | undefined

beforeAll(async () => {
  backend = createServer((request, response) => {
    request.resume()
    waiting.push(response)
  })
  await new Promise<void>((resolve) => backend.listen(0, '127.0.0.1', resolve))
  target = `http://127.0.0.1:${(backend.address() as AddressInfo).port}/mcp`
})
afterEach(async () => {
  await proxy?.close()
  proxy = undefined
  waiting = []
})
afterAll(() => {
  backend.closeAllConnections()
  backend.close()
})

const files = (listen: string, more: object = {}) => ({
  'auth.json': authConfig('key', {
    type: 'headerInjection',
    headerInjection: { headerName: 'X-Api-Key', valueSecretRef: { name: 'api', key: 'key' } },
  }),
  'proxy.json': proxyConfig({
    listen: { address: listen },
    auth: { mode: 'anonymous' },
    routes: [{ name: 'one', path: '/one', target, externalAuthConfigRef: { name: 'key' }, ...more }],
  }),
  'secrets/api/key': 'value-of-the-key',
})

describe('a reload that changes the address', () => {
  it('validates routes by the address that stays bound, so that no credential is exposed on it', async () => {
    proxy = await run(files('0.0.0.0:0', { insecureAllowAnonymous: true }), { listen: undefined })
    await proxy.write('proxy.json', files('127.0.0.1:0')['proxy.json'])
    const result = await proxy.reload()
    expect(result).toMatchObject({ ok: false, problems: [expect.stringContaining('the bind is not loopback')] })
    const config = (await (await fetch(`${proxy.adminUrl}/config`)).json()) as { routes: object[] }
    expect(config.routes[0]).toMatchObject({ insecureAllowAnonymous: true })
  })

  it('takes over what is allowed on both, and says that the address needs a restart', async () => {
    proxy = await run(files('127.0.0.1:0'), { listen: undefined })
    await proxy.write('proxy.json', files('127.0.0.1:1', { name: 'two' })['proxy.json'])
    expect(await proxy.reload()).toEqual({ ok: true })
    const config = (await (await fetch(`${proxy.adminUrl}/config`)).json()) as { listen: object; routes: object[] }
    expect(config.listen).toMatchObject({ address: '127.0.0.1:0' })
    expect(config.routes[0]).toMatchObject({ name: 'two' })
  })
})

describe('while the proxy drains', () => {
  it('the admin listener says so, still has metrics, and takes no new configuration', async () => {
    const running = await run(files('127.0.0.1:0'), { drainGraceMs: 10_000 })
    const answer = post(`${running.url}/one`, INITIALIZE)
    while (waiting.length === 0) await new Promise((resolve) => setTimeout(resolve, 10))
    const closed = running.close()
    const readiness = await fetch(`${running.adminUrl}/readiness`)
    expect(readiness.status).toBe(503)
    expect(await readiness.json()).toEqual({ status: 'unavailable', detail: { draining: true } })
    expect(await (await fetch(`${running.adminUrl}/metrics`)).text()).toContain('extauth_requests_total')
    const reload = await fetch(`${running.adminUrl}/reload`, { method: 'POST' })
    expect(reload.status).toBe(422)
    expect(await reload.json()).toEqual({ reloaded: false, problems: ['the proxy is shutting down'] })
    waiting[0]?.writeHead(200, { 'content-type': 'application/json' }).end('{}')
    expect((await answer).status).toBe(200)
    await closed
    await expect(fetch(`${running.adminUrl}/health`)).rejects.toThrow('fetch failed')
  })
})
