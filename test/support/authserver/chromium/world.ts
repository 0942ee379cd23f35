import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core'
import { expect } from 'vitest'
import type { Sockets } from '../../sockets.ts'
import {
  authorizeUrl,
  makePkce,
  redeem,
  register,
  startRig,
  type Pkce,
  type RigOptions,
  type TestClient,
} from '../rig.ts'

export interface World extends Awaited<ReturnType<typeof startWorld>> {}

/** An authorization server, its upstream, and a client on this device, all on real sockets. */
export async function startWorld(sockets: Sockets, browser: Browser, options: RigOptions = {}) {
  const rig = await startRig(sockets, options)
  // The client's response: the user may close the tab.
  const client = await sockets.http((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' })
    response.end('<!doctype html><title>Client</title><p>Done.')
  })
  return { rig, redirect: `${client}/callback`, ...createPeople(browser) }
}

/** People with browsers of their own. */
export function createPeople(browser: Browser) {
  const contexts: BrowserContext[] = []
  return {
    /** A browser of its own, with its own cookies. */
    async person(settings: BrowserContextOptions = {}): Promise<Page> {
      const context = await browser.newContext({ ignoreHTTPSErrors: true, ...settings })
      context.setDefaultTimeout(30_000)
      contexts.push(context)
      return context.newPage()
    },
    async close() {
      await Promise.all(contexts.splice(0).map((context) => context.close()))
    },
  }
}

export interface Asking {
  readonly client: TestClient
  readonly pkce: Pkce
  readonly url: string
}

/** A client that asks for access; `url` is what it opens in a browser. */
export async function ask(
  { rig, redirect }: World,
  metadata: object = {},
  more: Readonly<Record<string, string | undefined>> = {},
): Promise<Asking> {
  const redirects = { redirect_uris: [redirect], ...metadata }
  const client = await register(rig, redirects)
  const pkce = makePkce()
  const url = authorizeUrl(rig, client, pkce, { redirect_uri: redirects.redirect_uris[0], ...more })
  return { client, pkce, url }
}

/** From the upstream's page to the client's. */
export async function signIn(page: Page, redirect: string): Promise<URLSearchParams> {
  await page.locator('#in').click()
  await page.waitForURL((url) => url.href.startsWith(redirect))
  return new URL(page.url()).searchParams
}

/** The code is worth a token. */
export async function expectToken({ rig, redirect }: World, { client, pkce }: Asking, answer: URLSearchParams) {
  const response = await redeem(rig, client, answer.get('code') ?? '', pkce, { redirect_uri: redirect })
  expect([response.status, await response.json()]).toMatchObject([200, { token_type: 'Bearer' }])
}

export const press = (page: Page, name: 'Continue' | 'Cancel') =>
  page.getByRole('button', { name, exact: true }).click()

export const LOST = 'This sign-in can’t continue here'
