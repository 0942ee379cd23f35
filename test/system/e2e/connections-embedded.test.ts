import { afterEach, describe, expect, it } from 'vitest'
import { ACCESS, type Idp, startIdp } from '../../support/upstreams/idp.ts'
import { backFrom } from '../../support/authserver/rig.ts'
import { Browser, textOf } from '../../support/authserver/browser.ts'
import { Application, LEGACY, logIn } from '../../support/e2e/authserver/application.ts'
import { openWorld, type World } from '../../support/e2e/authserver/world.ts'
import { authConfig, proxyConfig } from '../../support/e2e/run.ts'
import { runWorkersProcess } from '../../support/e2e/workers.ts'
import { createSockets } from '../../support/sockets.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

/** The program with an embedded server, whose callers connect accounts at `service`. */
async function start(): Promise<{ readonly world: World; readonly service: Idp }> {
  const service = await startIdp(sockets)
  const world = await openWorld(sockets, {
    start: (files, listen) => runWorkersProcess(sockets, files, { workers: 1, listen }),
    files: ({ proxy, backend }) => ({
      'own.json': authConfig('own', { type: 'upstreamInject', upstreamInject: { providerName: 'github' } }),
      'proxy.json': proxyConfig({
        authServerRef: { kind: 'MCPExternalAuthConfig', name: 'as' },
        connections: {
          baseUrl: proxy,
          storage: { type: 'memory' },
          providers: [
            {
              name: 'github',
              type: 'oidc',
              caBundleRef: { name: 'idp', key: 'ca' },
              oidcConfig: {
                issuerUrl: service.url,
                clientId: 'us',
                clientSecretRef: { name: 'idp', key: 'secret' },
                scopes: ['openid', 'repo'],
              },
            },
          ],
        },
        routes: [
          {
            name: 'mcp',
            path: '/mcp',
            target: `${backend}/open`,
            externalAuthConfigRef: { name: 'own' },
            resourceUrl: `${proxy}/mcp`,
          },
        ],
      }),
    }),
  })
  return { world, service }
}

/** The official client logs in as Alice; her browser keeps the login. */
async function logInAsAlice(world: World, browser: Browser) {
  const user = { userAt: (url: string) => world.userAt(url, { browser }) }
  return logIn(user, `${world.url}/mcp`, new Application(), LEGACY)
}

type Client = Awaited<ReturnType<typeof logInAsAlice>>

const call = async (client: Client): Promise<string> => JSON.stringify(await client.callTool({ name: 'show_request' }))
const linkIn = (result: string): string => /http:\S+\/connect\/[A-Za-z0-9_-]+/.exec(result)?.[0] ?? ''

/** Follows a link to the first page, logging in as `subject` where the identity provider asks. */
async function open({ idp, url }: World, browser: Browser, link: string, subject?: string) {
  let visits = 0
  for (let at = link; ;) {
    const seen = await browser.get(at)
    if (seen.location === undefined) return { page: seen, visits }
    at = new URL(seen.location, seen.url).href
    if (!at.startsWith(url)) {
      if (subject === undefined) throw new Error(`no login was expected, but the browser was sent to ${at}`)
      visits++
      at = (await idp.approve(at, subject)).href
    }
  }
}

async function connect(
  { world, service }: Awaited<ReturnType<typeof start>>,
  browser: Browser,
  page: { html: string },
) {
  const away = await browser.press(page as Parameters<Browser['press']>[0], 'continue')
  const done = await open(world, browser, backFrom({ idp: service, clock: Date }, away))
  expect(textOf(done.page)).toContain('Your account at github is connected')
}

describe('callers of the embedded server', () => {
  it('connect an account with the login that their browser has', async () => {
    const both = await start()
    const browser = new Browser()
    const client = await logInAsAlice(both.world, browser)
    const link = linkIn(await call(client))
    const { page } = await open(both.world, browser, link)
    expect(textOf(page)).toContain('You are signed in as Alice')
    await connect(both, browser, page)

    // The session of the placeholder is over.
    await expect(call(client)).rejects.toMatchObject({ status: 404 })
    const again = await logInAsAlice(both.world, browser)
    expect(await call(again)).toContain('tools/call')
    const seen = both.world.backend.requests('/open').at(-1)
    expect(seen?.headers).toContain(`Bearer ${ACCESS}`)
    await Promise.all([client.close(), again.close()])
  }, 60_000)

  it('log in first in another browser, where a different person is refused', async () => {
    const both = await start()
    const { world } = both
    const client = await logInAsAlice(world, new Browser())
    const link = linkIn(await call(client))

    const bob = new Browser()
    const refused = await open(world, bob, link, 'bob')
    expect([refused.page.status, refused.visits]).toEqual([403, 1])
    expect(textOf(refused.page)).toContain('made for somebody else')
    // Bob's own login at the embedded server does not help him.
    await world.userAt(await authorizationUrlOf(world), { browser: bob, subject: 'bob' })
    expect((await open(world, bob, link, 'bob')).page.status).toBe(403)

    const elsewhere = new Browser()
    const { page, visits } = await open(world, elsewhere, link, 'alice')
    expect(visits).toBe(1)
    await connect(both, elsewhere, page)
    await client.close()
  }, 60_000)
})

/** Where an official client sends its user. */
async function authorizationUrlOf(world: World): Promise<string> {
  const application = new Application()
  await logIn({ userAt: () => Promise.reject(new Error('stopped')) }, `${world.url}/mcp`, application, LEGACY).catch(
    () => undefined,
  )
  return application.sent[0]?.href ?? ''
}
