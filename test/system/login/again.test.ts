import { once } from 'node:events'
import { createServer } from 'node:net'
import { describe, expect, it } from 'vitest'
import { loginCredentials, newLogin, revoke } from '../../../src/login/index.ts'
import { AS_METADATA, type Json, RESOURCE_METADATA, usePaperServer } from '../../support/login/paper-server.ts'

const paper = usePaperServer()
const TOKENS = { access_token: 'access', token_type: 'Bearer', expires_in: 300, refresh_token: 'refresh' }

const registrations = (): number => paper.asked.filter(({ path }) => path === '/register').length
const refreshes = (): Record<string, string>[] =>
  paper.asked
    .filter(({ path, body }) => path === '/token' && (body as URLSearchParams).get('grant_type') === 'refresh_token')
    .map(({ body }) => Object.fromEntries(body as URLSearchParams))
const portIn = (shown: URLSearchParams): number => Number(new URL(shown.get('redirect_uri') ?? '').port)

/** The token endpoint's response to a refresh; codes are redeemed as usual. */
function refreshIs(status: number, body: Json): void {
  paper.documents['/token'] = (sent) =>
    (sent as URLSearchParams).get('grant_type') === 'refresh_token' ? [status, body] : [200, TOKENS]
}

async function recorded() {
  const [record, ...others] = await paper.store.all()
  if (record === undefined || others.length > 0) throw new Error(`${others.length + 1} logins`)
  return record
}

describe('another login', () => {
  it('is one of the same client at the same port, when nothing has changed', async () => {
    const first = await paper.login()
    refreshIs(400, { error: 'invalid_grant' })
    const second = await paper.login({ now: () => Date.now() + 600_000 })
    expect([portIn(second), second.get('client_id'), registrations()]).toEqual([portIn(first), 'registered', 1])
    expect(second.get('state')).not.toBe(first.get('state'))
  })

  it('is one of another client when the port is taken', async () => {
    const first = await paper.login()
    refreshIs(400, { error: 'invalid_grant' })
    const taken = createServer().listen(portIn(first), '127.0.0.1')
    await once(taken, 'listening')
    try {
      const second = await paper.login({ now: () => Date.now() + 600_000 })
      expect(portIn(second)).not.toBe(portIn(first))
      expect(registrations()).toBe(2)
    } finally {
      taken.close()
    }
  })

  it('is one of another client at another server, and takes the place of the one before', async () => {
    await paper.login()
    const issuer = `${paper.origin}/other`
    paper.documents['/.well-known/oauth-authorization-server/other'] = paper.metadata({ issuer })
    paper.documents[RESOURCE_METADATA] = { resource: `${paper.origin}/mcp`, authorization_servers: [issuer] }
    paper.documents['/register'] = { client_id: 'theirs', token_endpoint_auth_method: 'none' }
    refreshIs(400, { error: 'invalid_grant' })
    const second = await paper.login({ now: () => Date.now() + 600_000 })
    expect(second.get('client_id')).toBe('theirs')
    expect(await recorded()).toMatchObject({ issuer, client: { client_id: 'theirs' } })
  })

  it('asks for more scopes beside those of before, and no refresh is tried for that', async () => {
    await paper.login()
    const credentials = loginCredentials(paper.options())
    await credentials.refused(await credentials.current(), 'Bearer error="insufficient_scope", scope="write"', true)
    expect(paper.shown[1]?.get('scope')).toBe('files write')
    expect(refreshes()).toEqual([])
  })

  it.each(['invalid_grant', 'invalid_client', 'unauthorized_client'])(
    'follows a refresh that is answered %s',
    async (error) => {
      await paper.login()
      refreshIs(400, { error })
      await paper.login({ now: () => Date.now() + 600_000 })
      expect(paper.shown).toHaveLength(2)
    },
  )

  it.each<[string, number]>([
    ['invalid_client', 2],
    ['unauthorized_client', 2],
    ['invalid_grant', 1],
  ])(
    'is one of a client that the server knows: after a refresh that is answered %s it registers %i times',
    async (error, times) => {
      const credentials = loginCredentials(paper.options())
      await credentials.refused(undefined, 'Bearer scope="files write"', true)
      refreshIs(401, { error })
      paper.documents['/register'] = { client_id: 'another', token_endpoint_auth_method: 'none' }
      const later = loginCredentials(paper.options({ now: () => Date.now() + 600_000 }))
      await later.refused(await later.current(), undefined, true)
      expect(registrations()).toBe(times)
      expect(paper.shown[1]?.get('client_id')).toBe(times === 1 ? 'registered' : 'another')
      // The granted scopes are requested again.
      expect(paper.shown[1]?.get('scope')).toBe('files write')
      expect((await recorded()).client.client_id).toBe(paper.shown[1]?.get('client_id'))
    },
  )

  it('registers a new client after a login that did not return, if the server may not know the old one', async () => {
    paper.documents['/token'] = { access_token: 'access', token_type: 'Bearer', expires_in: 300 }
    await paper.login()
    const now = (): number => Date.now() + 600_000
    // A server that has forgotten its clients has a page for the person, and no way back.
    const openBrowser = (url: string): void => void paper.shown.push(new URL(url).searchParams)
    await expect(paper.login({ now, openBrowser, patienceMs: 50 })).rejects.toThrow('did not return')
    expect([paper.shown[1]?.get('client_id'), registrations()]).toEqual(['registered', 1])
    paper.documents['/register'] = { client_id: 'another', token_endpoint_auth_method: 'none' }
    const third = await paper.login({ now })
    expect([third.get('client_id'), registrations()]).toEqual(['another', 2])
  })

  it('leaves a login that lacks scopes as it was when did not return', async () => {
    paper.documents['/token'] = { access_token: 'access', token_type: 'Bearer', expires_in: 300 }
    await paper.login()
    const credentials = loginCredentials(paper.options({ openBrowser: () => undefined, patienceMs: 50 }))
    const asked = 'Bearer error="insufficient_scope", scope="write"'
    await expect(credentials.refused(await credentials.current(), asked, true)).rejects.toThrow('did not return')
    expect((await credentials.current())?.reveal()).toBe('access')
  })

  it('rests for a minute after one that failed, and no longer; who asks at the same time gets the same answer', async () => {
    let nowMs = Date.now()
    const openBrowser = (): void => void paper.shown.push(new URLSearchParams())
    const credentials = loginCredentials(paper.options({ openBrowser, patienceMs: 50, now: () => nowMs }))
    const ask = () => credentials.refused(undefined, 'Bearer', true)
    const both = await Promise.allSettled([ask(), ask()])
    expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    nowMs += 59_999
    await expect(ask()).rejects.toThrow('did not return')
    expect(paper.shown).toHaveLength(1)
    nowMs += 1
    await expect(ask()).rejects.toThrow('did not return')
    expect(paper.shown).toHaveLength(2)
  })
})

describe('`extauth login`', () => {
  it('logs in again regardless of the store, without a refresh, as a new client', async () => {
    await paper.login()
    refreshIs(400, { error: 'invalid_request' })
    paper.documents['/register'] = { client_id: 'another', token_endpoint_auth_method: 'none' }
    const record = await newLogin(paper.options(), 'Bearer')
    expect([record.client.client_id, paper.shown.length, refreshes()]).toEqual(['another', 2, []])
    expect(await recorded()).toEqual(record)
  })

  it('keeps the client where the server registers none any more', async () => {
    const first = await paper.login()
    paper.documents[AS_METADATA] = paper.metadata({ registration_endpoint: undefined })
    const record = await newLogin(paper.options(), 'Bearer')
    expect([record.client.client_id, portIn(paper.shown[1] ?? first)]).toEqual(['registered', portIn(first)])
  })

  it('leaves the stored login as it is where the person does not come back', async () => {
    await paper.login()
    const before = await recorded()
    const openBrowser = (): void => undefined
    await expect(newLogin(paper.options({ openBrowser, patienceMs: 50 }), 'Bearer')).rejects.toThrow('did not return')
    expect(await recorded()).toEqual(before)
  })
})

describe('a refresh', () => {
  const later = (ms: number) => loginCredentials(paper.options({ now: () => Date.now() + ms }))

  it('is for the same resource, and keeps the refresh token where no other comes', async () => {
    await paper.login()
    refreshIs(200, { access_token: 'second', token_type: 'Bearer' })
    expect((await later(280_000).current())?.reveal()).toBe('second')
    expect(refreshes()).toEqual([
      expect.objectContaining({ refresh_token: 'refresh', resource: `${paper.origin}/mcp`, client_id: 'registered' }),
    ])
    const record = await recorded()
    expect(record).toMatchObject({ access_token: 'second', refresh_token: 'refresh', scope: 'files' })
    // The end of the token before is not the end of this one.
    expect(record.expires_at_ms).toBeUndefined()
  })

  it('that the server cannot do now leaves the token for as long as it lasts, and opens no browser', async () => {
    await paper.login()
    refreshIs(500, { error: 'server_error' })
    expect((await later(280_000).current())?.reveal()).toBe('access')
    await expect(later(301_000).current()).rejects.toMatchObject({ reason: 'login_failed' })
    expect(paper.shown).toHaveLength(1)
  })

  it('is not tried long before the end', async () => {
    await paper.login()
    expect((await later(260_000).current())?.reveal()).toBe('access')
    expect(refreshes()).toEqual([])
  })
})

describe('what goes wrong', () => {
  it('is reported by its code, never with text of the server', async () => {
    paper.documents['/token'] = () => [400, { error: 'Click <a>here</a>', error_description: 'and pay' }]
    const failure = await paper.login().then(
      () => '',
      (error: unknown) => String(error),
    )
    expect(failure).toContain('issued no token')
    expect(failure).not.toMatch(/[<>]|pay/)
  })

  it('leaves no listener', async () => {
    const shown = await paper.login()
    await expect(fetch(shown.get('redirect_uri') ?? '')).rejects.toThrow('fetch failed')
  })
})

describe('the end of a login', () => {
  const withRevocation = (url: string): void => {
    paper.documents[AS_METADATA] = paper.metadata({ revocation_endpoint: url })
  }
  const revoked = (): (string | null)[] =>
    paper.asked.filter(({ path }) => path === '/revoke').map(({ body }) => (body as URLSearchParams).get('token'))

  it('is sent to a server over https, or on this machine', async () => {
    withRevocation('http://example.com/revoke')
    await paper.login()
    expect(await revoke(await recorded(), paper.options().outbound)).toBe(false)
  })

  it('takes refresh and access token; a server that revokes no access tokens is fine', async () => {
    withRevocation(`${paper.origin}/revoke`)
    await paper.login()
    paper.documents['/revoke'] = (body) =>
      (body as URLSearchParams).get('token') === 'refresh' ? [200, {}] : [400, { error: 'unsupported_token_type' }]
    expect(await revoke(await recorded(), paper.options().outbound)).toBe(true)
    expect(revoked()).toEqual(['refresh', 'access'])
    paper.documents['/revoke'] = () => [503, {}]
    await expect(revoke(await recorded(), paper.options().outbound)).rejects.toThrow('did not revoke the tokens')
  })
})
