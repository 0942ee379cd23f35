import { UnauthorizedError } from '@modelcontextprotocol/client'
import { decodeJwt } from 'jose'
import { afterEach, describe, expect, it } from 'vitest'
import { Browser } from '../../../support/authserver/browser.ts'
import { createSockets } from '../../../support/sockets.ts'
import { authConfig, proxyConfig } from '../../../support/e2e/run.ts'
import { Application, call, connect, finish, LEGACY, logIn } from '../../../support/e2e/authserver/application.ts'
import { openWorld, type World } from '../../../support/e2e/authserver/world.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

// As `openssl rand 32` writes it: no UTF-8, and a newline at its end that belongs to it.
const RAW = Buffer.concat([Buffer.from([0xff, 0xfe, 0x00]), Buffer.alloc(28, 0xa5), Buffer.from('\n')])

type Urls = { readonly proxy: string; readonly backend: string }

const route = ({ proxy, backend }: Urls, name: string, authServer: string) => ({
  name,
  path: `/${name}`,
  target: `${backend}/open`,
  externalAuthConfigRef: { name: 'inject' },
  authServerRef: { kind: 'MCPExternalAuthConfig', name: authServer },
  resourceUrl: `${proxy}/${name}`,
})

const SERVERS = ['as', 'as-b', 'as-c']
const PATHS = ['mcp', 'inject', 'deep']
const routes = (urls: Urls, servers: readonly string[]) =>
  PATHS.map((name, index) => route(urls, name, servers[index] ?? ''))

/** Three servers with issuers of different paths in one process, a route for each. */
const openThree = (): Promise<World> =>
  openWorld(sockets, {
    routes: (urls) => routes(urls, SERVERS),
    files: () => ({ 'secrets/as/hmac': RAW }),
    servers: { 'as-b': '/b', 'as-c': '/b/c' },
  })

describe('several authorization servers in one process', () => {
  it('know their own clients, logins and tokens, and no others', async () => {
    const world = await openThree()
    const applications = { mcp: new Application(), inject: new Application(), deep: new Application() }
    for (const [name, application] of Object.entries(applications)) {
      const client = await logIn(world, `${world.url}/${name}`, application, LEGACY)
      expect(await call(client)).toContain('tools/call')
      await client.close()
    }
    const issuers = Object.values(applications).map(({ kept }) => decodeJwt(kept?.access_token ?? '').iss)
    expect(issuers).toEqual([world.url, `${world.url}/b`, `${world.url}/b/c`])
    const statuses: number[] = []
    for (const name of Object.keys(applications)) {
      for (const { kept } of Object.values(applications)) {
        const headers = { authorization: `Bearer ${kept?.access_token}` }
        statuses.push((await fetch(`${world.url}/${name}`, { method: 'DELETE', headers })).status)
      }
    }
    expect(statuses.map((status) => status === 401)).toEqual([false, true, true, true, false, true, true, true, false])
    const token = { grant_type: 'refresh_token', refresh_token: applications.inject.kept?.refresh_token ?? '' }
    const body = new URLSearchParams({ ...token, client_id: applications.inject.client?.client_id ?? '' })
    const answers = await Promise.all(
      ['', '/b/c', '/b'].map((path) => fetch(`${world.url}${path}/oauth/token`, { method: 'POST', body })),
    )
    expect(answers.map(({ status }) => status)).toEqual([401, 401, 200])
  })
})

describe('a reload', () => {
  it('that changes a server ends no login: tokens, sessions, refresh and logins in flight continue', async () => {
    const world = await openThree()
    const url = `${world.url}/mcp`
    const application = new Application()
    const client = await logIn(world, url, application, LEGACY)
    expect(await call(client)).toContain('tools/call')
    const { access_token: access = '', refresh_token: before } = application.kept ?? {}

    // A second login is at the page of consent while the server is replaced.
    const late = new Application()
    await expect(connect(url, late, LEGACY)).rejects.toThrow(UnauthorizedError)
    const browser = new Browser()
    const page = await browser.get(late.sent[0]?.href ?? '')
    expect(page.status).toBe(200)

    const failures: number[] = []
    const asking = new AbortController()
    const ask = async (): Promise<void> => {
      const headers = { authorization: `Bearer ${access}`, accept: 'application/json, text/event-stream' }
      while (!asking.signal.aborted) {
        const response = await fetch(url, { method: 'POST', headers, body: '{}' })
        await response.arrayBuffer()
        if (response.status === 401 || response.status >= 500) failures.push(response.status)
      }
    }
    const load = Promise.all([ask(), ask(), ask()])
    for (const lifespan of ['10m', '20m', '30m']) {
      const embeddedAuthServer = { ...world.spec, tokenLifespans: { accessTokenLifespan: lifespan } }
      await world.proxy.write('as.json', authConfig('as', { type: 'embeddedAuthServer', embeddedAuthServer }))
      await world.proxy.reload()
    }
    asking.abort()
    await load
    expect(failures).toEqual([])

    const answer = await world.userAt(late.sent[0]?.href ?? '', { browser })
    const { kept } = await finish({ userAt: () => Promise.resolve(answer) }, url, late).then(() => late)
    const { exp = 0, iat = 0 } = decodeJwt(kept?.access_token ?? '')
    expect(exp - iat).toBe(30 * 60)
    expect(await call(client)).toContain('tools/call')
    expect(application.kept?.access_token).toBe(access)
    const form = {
      grant_type: 'refresh_token',
      refresh_token: before ?? '',
      client_id: application.client?.client_id ?? '',
    }
    const renewed = await fetch(`${world.url}/oauth/token`, { method: 'POST', body: new URLSearchParams(form) })
    expect(renewed.status).toBe(200)
    await client.close()
  })

  it('that takes a server away ends its tokens, and putting it back brings them back', async () => {
    const world = await openThree()
    const url = `${world.url}/deep`
    const application = new Application()
    const client = await logIn(world, url, application, LEGACY)
    await client.close()
    const status = async () => {
      const headers = { authorization: `Bearer ${application.kept?.access_token}` }
      return (await fetch(url, { method: 'DELETE', headers })).status
    }
    expect(await status()).not.toBe(401)
    const urls = { proxy: world.url, backend: world.backend.url }
    await world.proxy.write('proxy.json', proxyConfig({ routes: routes(urls, ['as', 'as-b', 'as-b']) }))
    await world.proxy.reload()
    expect(await status()).toBe(401)
    await world.proxy.write('proxy.json', proxyConfig({ routes: routes(urls, SERVERS) }))
    await world.proxy.reload()
    const again = await connect(url, application, LEGACY)
    expect(await call(again)).toContain('tools/call')
    expect(application.sent).toHaveLength(1)
    await again.close()
  })
})
