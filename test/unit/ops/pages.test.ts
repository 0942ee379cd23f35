import { afterEach, describe, expect, it } from 'vitest'
import { Secret } from '../../../src/core/index.ts'
import { jsonReply, type Ops, type Pages } from '../../../src/ops/index.ts'
import { send, start } from '../../support/ops/start.ts'

const open: Ops[] = []
afterEach(async () => {
  for (const ops of open.splice(0)) await ops.close()
})

const pages: Pages = {
  path: '/inspect',
  isOpen: (path) => path.startsWith('/page/'),
  serve: ({ method, path }) => jsonReply(200, { method, path }),
  loginPage: () => ({ headers: { 'content-type': 'text/html' }, body: 'log in first' }),
}
const TOKEN = 'admin-token-0123456789'
let token = TOKEN

async function started(address: string, hasToken: boolean): Promise<{ url: string; host: string }> {
  token = TOKEN
  const guarded = { endpoints: {}, pages, ...(hasToken ? { token: () => new Secret(token) } : {}) }
  const ops = await start({ address, guarded })
  open.push(ops)
  return { url: ops.url, host: new URL(ops.url).host }
}
const local = (hasToken = false) => started('127.0.0.1:0', hasToken)
const anywhere = (hasToken = true) => started('0.0.0.0:0', hasToken)
const get = (url: string, path: string, headers: Record<string, string> = {}, method = 'GET') =>
  send(url, path, { method, headers: { host: new URL(url).host, ...headers } })

describe('pages on a local bind', () => {
  it('are served without a token, with headers that keep everything from elsewhere out', async () => {
    const { url } = await local()
    const { status, headers } = await get(url, '/inspect')
    expect(status).toBe(200)
    expect(headers['content-security-policy']).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self'/)
    expect(headers).toMatchObject({
      'x-frame-options': 'DENY',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'cross-origin-resource-policy': 'same-origin',
    })
    expect((await get(url, '/inspect/api/x')).status).toBe(200)
    expect((await get(url, '/inspector')).status).toBe(404)
  })

  it.each([
    ['a foreign Host, as after DNS rebinding', { host: 'evil.example.com' }],
    ['a page of another origin', { origin: 'https://evil.example.com' }],
    ['a page of another port of this machine', { origin: 'http://127.0.0.1:1' }],
    ['a sandboxed page', { origin: 'null' }],
    ['a browser that says cross-site', { 'sec-fetch-site': 'cross-site' }],
    ['a browser that says same-site', { 'sec-fetch-site': 'same-site' }],
    ['a client with an invalid bearer token', { host: 'evil.example.com', authorization: 'Bearer x' }],
  ])('refuse %s', async (_, headers) => {
    const { url } = await local()
    for (const path of ['/inspect', '/inspect/page/app.js', '/inspect/api/requests', '/inspect/api/events'])
      expect([path, (await get(url, path, headers)).status]).toEqual([path, 403])
  })

  it('take changes from a page of their own only', async () => {
    const { url, host } = await local()
    const own = { origin: `http://${host}`, 'sec-fetch-site': 'same-origin' }
    expect((await get(url, '/inspect/api/cache', own, 'DELETE')).status).toBe(403)
    const said = { ...own, 'x-extauth-inspect': '1' }
    expect((await get(url, '/inspect/api/cache', said, 'DELETE')).status).toBe(200)
    const foreign = { ...said, origin: 'http://127.0.0.1:1' }
    expect((await get(url, '/inspect/api/cache', foreign, 'DELETE')).status).toBe(403)
  })
})

describe('pages on a bind that others reach', () => {
  it('do not exist without a token', async () => {
    const { url } = await anywhere(false)
    for (const path of ['/inspect', '/inspect/page/app.js', '/inspect/api/requests', '/inspect/login'])
      expect([path, (await get(url, path, {}, path === '/inspect/login' ? 'POST' : 'GET')).status]).toEqual([path, 404])
  })

  it('return data only with the token, and the login page to all', async () => {
    const { url } = await anywhere()
    expect((await get(url, '/inspect/api/x')).status).toBe(401)
    expect((await get(url, '/inspect/api/x', { authorization: 'Bearer wrong' })).status).toBe(401)
    expect((await get(url, '/inspect/api/x', { authorization: `Bearer ${TOKEN}` })).status).toBe(200)
    expect((await get(url, '/inspect/page/app.js')).status).toBe(200)
    const page = await get(url, '/inspect')
    expect([page.status, page.text]).toEqual([401, 'log in first'])
    expect(page.headers['www-authenticate']).toBe('Bearer realm="extauth-admin"')
  })

  const logIn = (url: string, presented: string, headers: Record<string, string> = { 'x-extauth-inspect': '1' }) =>
    send(url, '/inspect/login', {
      method: 'POST',
      headers: { host: new URL(url).host, 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ token: presented }),
    })
  const cookieOf = (headers: Readonly<Record<string, unknown>>): string =>
    String(headers['set-cookie']).split(';')[0] ?? ''

  it('open a session for the token, in a cookie that no script and no other site can use', async () => {
    const { url } = await anywhere()
    const { status, headers } = await logIn(url, TOKEN)
    expect(status).toBe(204)
    expect(String(headers['set-cookie'])).toMatch(
      /^extauth-inspect=[\w-]{43}; Path=\/inspect; Max-Age=28800; HttpOnly; SameSite=Strict$/,
    )
    const cookie = cookieOf(headers)
    expect((await get(url, '/inspect/api/x', { cookie: `a=b; ${cookie}` })).status).toBe(200)
    expect((await get(url, '/inspect/api/x', { cookie: 'extauth-inspect=guessed' })).status).toBe(401)
    const site = { cookie, origin: 'https://evil.example.com', 'x-extauth-inspect': '1' }
    expect((await get(url, '/inspect/api/cache', site, 'DELETE')).status).toBe(403)
    expect((await get(url, '/inspect/api/cache', { cookie }, 'DELETE')).status).toBe(403)
    expect((await get(url, '/inspect/logout', { cookie, 'x-extauth-inspect': '1' }, 'POST')).status).toBe(204)
    expect((await get(url, '/inspect/api/x', { cookie })).status).toBe(401)
  })

  it('end all sessions when the token changes', async () => {
    const { url } = await anywhere()
    const cookie = cookieOf((await logIn(url, TOKEN)).headers)
    token = 'another-admin-token-0123'
    expect((await get(url, '/inspect/api/x', { cookie })).status).toBe(401)
  })

  it('refuse a wrong token, a login by another page, and one that is no JSON', async () => {
    const { url } = await anywhere()
    expect((await logIn(url, 'wrong')).status).toBe(401)
    expect((await logIn(url, TOKEN, {})).status).toBe(403)
    expect((await logIn(url, TOKEN, { 'x-extauth-inspect': '1', origin: 'https://evil.example.com' })).status).toBe(403)
    expect((await logIn(url, TOKEN, { 'x-extauth-inspect': '1', 'content-type': 'text/plain' })).status).toBe(400)
  })
})
