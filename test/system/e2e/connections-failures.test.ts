import type { IncomingMessage, ServerResponse } from 'node:http'
import { afterEach, expect, it } from 'vitest'
import { Browser, textOf } from '../../support/authserver/browser.ts'
import { backFrom } from '../../support/authserver/rig.ts'
import { authConfig, proxyConfig, run } from '../../support/e2e/run.ts'
import { APPLICATION_RULES } from '../../support/redis/acl.ts'
import { startRedis } from '../../support/redis/server.ts'
import { createSockets } from '../../support/sockets.ts'
import { TLS } from '../../support/tls.ts'
import { ACCESS, startIdp } from '../../support/upstreams/idp.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const CA = { name: 'idp', key: 'ca' }
const REDIS = { username: 'extauth', password: 'password-of-extauth' }

interface Response {
  readonly status: number
  readonly text: string
  readonly headers: Headers
}

/** The proxy, callers of `people`, and a backend that answers as a test says: by default with the credential. */
async function start(storage: object = { type: 'memory' }) {
  const [people, service] = [await startIdp(sockets), await startIdp(sockets)]
  const seen: string[] = []
  const state = { answer: undefined as ((response: ServerResponse, credential: string) => boolean) | undefined }
  const backend = await sockets.http((request: IncomingMessage, response) => {
    request.resume()
    const credential = String(request.headers['authorization'] ?? request.headers['x-key'])
    seen.push(credential)
    if (state.answer?.(response, credential) === true) return
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result: { content: [{ type: 'text', text: credential }] } }))
  })
  const client = (issuerUrl: string) => ({
    issuerUrl,
    clientId: 'us',
    clientSecretRef: { name: 'idp', key: 'secret' },
  })
  const route = (name: string) => ({
    name,
    path: `/${name}`,
    target: `${backend}/mcp`,
    externalAuthConfigRef: { name },
  })
  const proxy = sockets.closing(
    await run({
      'secrets/idp/ca': TLS.ca,
      'secrets/idp/secret': 'of us',
      'secrets/redis/username': REDIS.username,
      'secrets/redis/password': REDIS.password,
      'secrets/seal/key': 'a sealing secret of more than thirty-two bytes',
      'token.json': authConfig('token', { type: 'upstreamInject', upstreamInject: { providerName: 'github' } }),
      'key.json': authConfig('key', {
        type: 'headerInjection',
        headerInjection: { headerName: 'X-Key', connectionName: 'tracker' },
      }),
      'proxy.json': proxyConfig({
        auth: {
          mode: 'oauth',
          oauth: {
            resourceUrl: 'http://localhost/mcp',
            providers: [{ name: 'people', issuerUrl: people.url, audience: 'us', caCertPath: 'secrets/idp/ca' }],
          },
        },
        connections: {
          storage,
          keySecretRefs: [{ name: 'seal', key: 'key' }],
          login: [{ ...client(people.url), caBundleRef: CA }],
          providers: [
            {
              name: 'github',
              type: 'oidc',
              caBundleRef: CA,
              oidcConfig: { ...client(service.url), scopes: ['openid', 'repo'] },
            },
            { name: 'tracker', type: 'secret', secret: { label: 'API key' } },
          ],
        },
        routes: [route('token'), route('key')],
      }),
    }),
  )
  const call = async (path: string, sub = 'alice'): Promise<Response> => {
    const now = Math.floor(Date.now() / 1000)
    const token = await people.key.sign({ iss: people.url, sub, aud: 'us', iat: now, exp: now + 600 })
    const response = await fetch(proxy.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json', authorization: `Bearer ${token}` },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'read' } }),
    })
    return { status: response.status, text: await response.text(), headers: response.headers }
  }
  /** The consent page behind the link in a response. */
  const consent = async (browser: Browser, response: Response, sub = 'alice') => {
    people.claims = { ...people.claims, sub }
    const link = /http:\S+\/connect\/[\w-]+/.exec(response.text)?.[0] ?? ''
    return browser.get(backFrom({ idp: people, clock: Date }, await browser.get(link)))
  }
  /** Connects the account at the service; returns the URL at which the browser was there. */
  const connect = async (response: Response, sub = 'alice'): Promise<URL> => {
    const browser = new Browser()
    const away = await browser.press(await consent(browser, response, sub), 'continue')
    expect(textOf(await browser.get(backFrom({ idp: service, clock: Date }, away)))).toContain('is connected')
    return new URL(away.location ?? '')
  }
  const connectKey = async (response: Response, key: string): Promise<void> => {
    const browser = new Browser()
    const done = await browser.press(await consent(browser, response), 'continue', { key })
    expect(textOf(done)).toContain('is connected')
  }
  return { proxy, service, seen, state, call, connect, connectKey }
}

it('while the store is down, callers with a live token continue, and others get 503 until it is back', async () => {
  const users = ['user default off', `user ${REDIS.username} on >${REDIS.password} resetchannels ${APPLICATION_RULES}`]
  const redis = sockets.closing(await startRedis({ config: users }))
  const aclUserConfig = {
    usernameSecretRef: { name: 'redis', key: 'username' },
    passwordSecretRef: { name: 'redis', key: 'password' },
  }
  const world = await start({ type: 'kvstore', kvstore: { addr: `127.0.0.1:${redis.port}`, aclUserConfig } })
  await world.connect(await world.call('/token'))
  expect((await world.call('/token')).text).toContain(ACCESS)

  await redis.kill()

  expect((await world.call('/token')).text).toContain(ACCESS)
  const refused = await world.call('/token', 'bob')
  expect([refused.status, Number(refused.headers.get('retry-after')) > 0]).toEqual([503, true])
  expect(refused.text).toContain('store_unavailable')
  expect((await world.call('/token')).text).toContain(ACCESS)

  await redis.restart()
  await expect.poll(async () => (await world.call('/token', 'bob')).status, { timeout: 20_000 }).toBe(200)
  expect((await world.call('/token', 'bob')).text).toContain('/connect/')
}, 60_000)

it('403 insufficient_scope leads to a link that requests the union of the scopes', async () => {
  const world = await start()
  await world.connect(await world.call('/token'))
  world.state.answer = (response, credential) => {
    if (credential !== `Bearer ${ACCESS}`) return false
    const challenge = 'Bearer error="insufficient_scope", scope="repo admin:org"'
    response.writeHead(403, { 'www-authenticate': challenge }).end()
    return true
  }

  const prompted = await world.call('/token')

  expect(prompted.status).toBe(200)
  expect(prompted.text).toContain('This needs more permissions of your github account.')
  world.service.tokens = { access_token: 'with-more-scopes', refresh_token: 'second' }
  world.service.claims = { at_hash: undefined }
  const asked = await world.connect(prompted)
  expect(asked.searchParams.get('scope')?.split(' ').toSorted()).toEqual(['admin:org', 'openid', 'repo'])
  expect((await world.call('/token')).text).toContain('with-more-scopes')
})

it('a key that gets 401 twice within a minute ends its connection, and the prompt says so', async () => {
  const world = await start()
  await world.connectKey(await world.call('/key'), 'first-key')
  expect((await world.call('/key')).text).toContain('first-key')
  world.state.answer = (response, credential) => {
    if (credential !== 'first-key') return false
    response.writeHead(401).end()
    return true
  }
  world.seen.length = 0

  const prompted = await world.call('/key')

  expect(world.seen).toEqual(['first-key', 'first-key'])
  expect(prompted.status).toBe(200)
  expect(prompted.text).toContain('tracker ended this connection; connect your account again.')
  expect((await world.call('/key')).text).toContain('tracker ended this connection')
  expect(world.seen).toHaveLength(2)
  await world.connectKey(prompted, 'second-key')
  expect((await world.call('/key')).text).toContain('second-key')
})
