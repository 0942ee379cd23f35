import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createSockets } from '../../support/sockets.ts'
import { Browser, textOf } from '../../support/authserver/browser.ts'
import {
  authorizeUrl,
  LIMITS,
  logIn,
  makePkce,
  REDIRECT,
  register,
  startRig,
  type Rig,
} from '../../support/authserver/rig.ts'

const sockets = createSockets()
let rig: Rig
const pkce = makePkce()
const WEB = 'https://app.example.com/cb?x=1'
beforeAll(async () => {
  rig = await startRig(sockets, { spec: { limits: LIMITS } })
})
afterAll(() => sockets.closeAll())

type Change = Readonly<Record<string, string | undefined>>
const refused: [string, Change, string][] = [
  ['prompt=none', { prompt: 'none' }, 'consent_required'],
  ['a missing challenge', { code_challenge: undefined }, 'invalid_request'],
  ['another response type', { response_type: 'token' }, 'unsupported_response_type'],
  ['a malformed scope', { scope: '"' }, 'invalid_scope'],
  ['another resource', { resource: 'https://other.example/mcp' }, 'invalid_target'],
  ['a request object', { request: 'x' }, 'request_not_supported'],
]

describe('a link that ends at a client’s site', () => {
  it.each(refused)('with %s shows a page with the host first, and waits for a click', async (_name, change, error) => {
    const client = await register(rig, { redirect_uris: [WEB], client_name: 'Your <b>Bank</b>' })
    const seen = await new Browser().get(authorizeUrl(rig, client, pkce, { redirect_uri: WEB, ...change }))
    expect([seen.status, seen.location]).toEqual([400, undefined])
    expect(seen.html).not.toMatch(/http-equiv="refresh"|<script|<b>Bank/)
    expect(textOf(seen)).toMatch(/^Leaving this service app\.example\.com sent you here .*Your <b>Bank<\/b> Unverified/)
    expect(textOf(seen)).toContain(`${error}: `)
    const href = /<a class="button" rel="noreferrer" href="([^"]+)"/.exec(seen.html)?.[1]?.replaceAll('&amp;', '&')
    const url = new URL(href ?? '')
    expect(href).toContain(`${WEB}&error=${error}&`)
    expect([url.searchParams.get('iss'), url.searchParams.get('state')]).toEqual([rig.issuer, 'state-of-the-client'])
  })

  it.each(refused)(
    'with %s goes there at once where its user has let it in from this browser',
    async (_name, change) => {
      const client = await register(rig, { redirect_uris: [WEB, 'https://other.example/cb'] })
      const { browser } = await logIn(rig, client, { more: { redirect_uri: WEB } })
      const ask = (who: typeof client, redirect_uri: string) =>
        browser.get(
          authorizeUrl(rig, who, pkce, { redirect_uri, ...change, ...(change['scope'] ? {} : { scope: 'mcp:write' }) }),
        )
      const seen = await ask(client, WEB)
      expect([seen.status, seen.location]).toEqual([303, expect.stringContaining(`${WEB}&error=`)])
      expect((await ask(client, 'https://other.example/cb')).status, 'its other address').toBe(400)
      const twin = await register(rig, { redirect_uris: [WEB] })
      expect((await ask(twin, WEB)).status, 'another client at the same address').toBe(400)
    },
  )

  it.each(refused)('with %s goes at once to a program on this device, which waits for it', async (_name, change) => {
    const seen = await new Browser().get(authorizeUrl(rig, await register(rig), pkce, change))
    expect([seen.status, seen.location]).toEqual([303, expect.stringContaining(`${REDIRECT}?error=`)])
  })

  it('of an editor’s scheme shows the page', async () => {
    const client = await register(rig, { redirect_uris: ['cursor://x/cb'] })
    const seen = await new Browser().get(
      authorizeUrl(rig, client, pkce, { redirect_uri: 'cursor://x/cb', prompt: 'none' }),
    )
    expect([seen.status, textOf(seen)]).toEqual([400, expect.stringMatching(/^Leaving this service .* sent you here/)])
  })
})
