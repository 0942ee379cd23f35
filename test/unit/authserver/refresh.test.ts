import { decodeJwt } from 'jose'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createSockets } from '../../support/sockets.ts'
import { createCaller } from '../../support/ports.ts'
import {
  getTokens,
  LIMITS,
  logIn,
  postForm,
  redeem,
  refresh,
  register,
  startRig,
  type Rig,
  type TestClient,
  type Tokens,
} from '../../support/authserver/rig.ts'
import { ACCESS, REFRESH, type Answer } from '../../support/upstreams/idp.ts'

const sockets = createSockets()
let rig: Rig
let client: TestClient
beforeEach(async () => {
  rig = await startRig(sockets, { spec: { limits: LIMITS } })
  client = await register(rig)
})
afterEach(() => sockets.closeAll())

const next = async (token: string): Promise<Tokens & { readonly error?: string }> =>
  (await (await refresh(rig, client, token)).json()) as Tokens & { readonly error?: string }

const isRevoked = (accessToken: string): boolean => {
  const { tsid } = decodeJwt<{ tsid: string }>(accessToken)
  return rig.server.issuer.isRevoked({ tsid })
}

describe('a refresh token', () => {
  it('is another after each use, and only the last one is good', async () => {
    let tokens: Tokens = await getTokens(rig, client)
    const seen = new Set<string>()
    for (let i = 0; i < 5; i++) {
      seen.add(tokens.refresh_token ?? '')
      tokens = await next(tokens.refresh_token ?? '')
    }
    expect(seen.size).toBe(5)
    expect(isRevoked(tokens.access_token)).toBe(false)
  })

  it('gives the same successor for 30 s, as long as that is unused', async () => {
    const first = (await getTokens(rig, client)).refresh_token ?? ''
    const second = (await next(first)).refresh_token
    rig.clock.advance(30_000)
    expect((await next(first)).refresh_token).toBe(second)
  })

  it('ends the family when it is shown after 30 s', async () => {
    const { refresh_token: first = '', access_token: access } = await getTokens(rig, client)
    const second = (await next(first)).refresh_token ?? ''
    rig.clock.advance(30_001)
    expect((await next(first)).error).toBe('invalid_grant')
    expect((await next(second)).error).toBe('invalid_grant')
    expect(isRevoked(access)).toBe(true)
    expect(rig.metrics.value('extauth_authserver_replays_total', 'refresh_token')).toBe(1)
  })

  it('ends the family when it is shown after its successor was used', async () => {
    const first = (await getTokens(rig, client)).refresh_token ?? ''
    const second = (await next(first)).refresh_token ?? ''
    const third = (await next(second)).refresh_token ?? ''
    expect((await next(first)).error).toBe('invalid_grant')
    expect((await next(third)).error).toBe('invalid_grant')
  })

  it('ends the family when another client shows it', async () => {
    const { refresh_token: token = '' } = await getTokens(rig, client)
    const other = await register(rig)
    expect(await (await refresh(rig, other, token)).json()).toMatchObject({ error: 'invalid_grant' })
    expect((await next(token)).error).toBe('invalid_grant')
  })

  it('shown by 50 at once is rotated once, and all get the same successor', async () => {
    const { refresh_token: first = '' } = await getTokens(rig, client)
    const all = await Promise.all(Array.from({ length: 50 }, () => next(first)))
    expect(new Set(all.map((one) => one.refresh_token)).size).toBe(1)
    expect(new Set(all.map((one) => one.access_token)).size).toBe(50)
    rig.clock.advance(30_001)
    expect((await next(first)).error).toBe('invalid_grant')
    expect((await next(all[0]?.refresh_token ?? '')).error).toBe('invalid_grant')
  })

  it('that was never issued revokes nothing', async () => {
    const { refresh_token: token = '' } = await getTokens(rig, client)
    const forged = `${token.slice(0, -43)}${'A'.repeat(43)}`
    expect((await next(forged)).error).toBe('invalid_grant')
    expect((await next(token)).refresh_token).toBeDefined()
  })

  it('ends after its lifespan, and with the login after 30 days at the latest', async () => {
    rig.idp.tokens = { refresh_token: undefined }
    let tokens: Tokens = await getTokens(rig, client)
    for (let day = 1; day < 30; day++) {
      rig.clock.advance(86_400_000)
      tokens = await next(tokens.refresh_token ?? '')
    }
    rig.clock.advance(86_400_000 - 60_000)
    tokens = await next(tokens.refresh_token ?? '')
    expect(tokens.expires_in).toBe(60)
    rig.clock.advance(60_000)
    expect((await next(tokens.refresh_token ?? '')).error).toBe('invalid_grant')
    const week = await getTokens(rig, client)
    rig.clock.advance(7 * 86_400_000)
    expect((await next(week.refresh_token ?? '')).error).toBe('invalid_grant')
  })

  it('brings new claims each time, whether or not the upstream’s tokens are due', async () => {
    rig.idp.claims = { groups: ['admins', 'users'] }
    let { refresh_token: token = '', access_token: access } = await getTokens(rig, client)
    expect(decodeJwt(access)).toMatchObject({ groups: ['admins', 'users'] })
    for (const groups of [['users'], ['others'], undefined]) {
      rig.idp.claims = { ...rig.idp.claims, groups }
      ;({ refresh_token: token = '', access_token: access } = await next(token))
      expect(decodeJwt(access)['groups']).toEqual(groups)
    }
  })

  it('ends as soon as the upstream has ended the session or locked its user, however long its tokens live', async () => {
    const { refresh_token: token = '', access_token: access } = await getTokens(rig, client)
    rig.idp.token = { status: 400, body: { error: 'invalid_grant' } }
    expect((await next(token)).error).toBe('invalid_grant')
    expect(isRevoked(access)).toBe(true)
  })

  it('is good while the upstream can’t be asked, as long as what it gave is not due', async () => {
    rig.idp.claims = { groups: ['users'] }
    const { refresh_token: token = '' } = await getTokens(rig, client)
    rig.idp.token = { status: 503 }
    expect(decodeJwt((await next(token)).access_token)).toMatchObject({ groups: ['users'] })
  })

  it('is not used up while the upstream is down, and is revoked when the upstream rejects its grant', async () => {
    const { refresh_token: token = '', access_token: access } = await getTokens(rig, client)
    rig.clock.advance(4000_000)
    rig.idp.token = { status: 503 }
    const down = await refresh(rig, client, token)
    expect([down.status, await down.json()]).toMatchObject([503, { error: 'temporarily_unavailable' }])
    expect(down.headers.has('retry-after')).toBe(true)
    rig.clock.advance(60_000)
    rig.idp.token = { status: 400, body: { error: 'invalid_grant' } }
    expect((await next(token)).error).toBe('invalid_grant')
    expect(isRevoked(access)).toBe(true)
  })
})

describe('the scope of a refresh', () => {
  const login = async (scope: string) => {
    const { refresh_token: token = '', scope: granted } = await getTokens(rig, client, { more: { scope } })
    const narrowed = async (asked: string) =>
      (await (await refresh(rig, client, token, { scope: asked })).json()) as { scope?: string; error?: string }
    return { granted, narrowed }
  }

  it('may repeat what the login requested: what was not granted is left out', async () => {
    const { granted, narrowed } = await login('openid mcp:read profile')
    expect(granted).toBe('mcp:read')
    expect((await narrowed('openid mcp:read profile')).scope).toBe('mcp:read')
  })

  it('may have empty scopes in it', async () => {
    expect((await (await login('mcp:read mcp:write')).narrowed(' mcp:write  mcp:read')).scope).toBe(
      'mcp:write mcp:read',
    )
    expect((await (await login('mcp:read')).narrowed(' ')).scope).toBe('mcp:read')
  })

  it('is not widened to what the login did not request', async () => {
    const { narrowed } = await login('openid mcp:read')
    expect((await narrowed('mcp:read mcp:write')).error).toBe('invalid_scope')
    expect((await narrowed('mcp:read email')).error).toBe('invalid_scope')
  })
})

describe('an upstream that refuses a refresh, but not with invalid_grant', () => {
  const HUBSPOT: Answer = { status: 400, body: { status: 'BAD_REFRESH_TOKEN', message: 'missing or invalid' } }
  const use = (access: string) => {
    const { sub, tsid } = decodeJwt<{ sub: string; tsid: string }>(access)
    const caller = createCaller({ issuer: rig.issuer, subject: sub, claims: { tsid, client_id: client.id } })
    return rig.server.upstreamTokens.current(caller, 'corp', 'access_token')
  }

  it('sends the client to a new login, keeps the grant, and asks for it again after five minutes', async () => {
    const { refresh_token: token = '', access_token: access } = await getTokens(rig, client)
    rig.clock.advance(3_600_000)
    rig.idp.token = HUBSPOT
    const refused = { code: 'no_session', status: 401, challenge: { error: 'invalid_token' } }
    await expect(use(access)).rejects.toMatchObject(refused)
    expect(await next(token)).toMatchObject({ error: 'invalid_grant' })
    expect(isRevoked(access)).toBe(false)
    expect(rig.log.lines.join('')).toContain('refresh rejected by the upstream')
    const asked = rig.idp.count('/token')
    rig.idp.token = undefined
    rig.clock.advance(299_999)
    await expect(use(access)).rejects.toMatchObject(refused)
    expect(rig.idp.count('/token')).toBe(asked)
    rig.clock.advance(1)
    const now = rig.clock.now() / 1000
    rig.idp.claims = { iat: now, exp: now + 600, at_hash: undefined }
    expect((await use(access)).token.reveal()).toBe(ACCESS)
    expect((await next(token)).access_token).toBeDefined()
  })

  it('does not keep a new login out', async () => {
    const { access_token: access } = await getTokens(rig, client)
    rig.clock.advance(3_600_000)
    rig.idp.token = HUBSPOT
    await expect(use(access)).rejects.toMatchObject({ code: 'no_session' })
    rig.idp.token = undefined
    const again = await getTokens(rig, client)
    expect((await use(again.access_token)).token.reveal()).toBe(ACCESS)
  })
})

describe('a code that is shown again', () => {
  it('ends what came of it, when its verifier is shown as well', async () => {
    const { answer, pkce } = await logIn(rig, client)
    const code = answer.get('code') ?? ''
    const tokens = (await (await redeem(rig, client, code, pkce)).json()) as Tokens
    expect((await redeem(rig, client, code, { ...pkce, verifier: 'x'.repeat(43) })).status).toBe(400)
    expect(isRevoked(tokens.access_token)).toBe(false)
    expect(await (await redeem(rig, client, code, pkce)).json()).toMatchObject({ error: 'invalid_grant' })
    expect(isRevoked(tokens.access_token)).toBe(true)
    expect((await next(tokens.refresh_token ?? '')).error).toBe('invalid_grant')
  })
})

describe('revocation', () => {
  const idpRevokes = (answer: Answer) => {
    rig.idp.metadata = { revocation_endpoint: `${rig.idp.url}/revoke` }
    rig.idp.revocation = answer
  }
  const revoke = (form: Readonly<Record<string, string>>) =>
    postForm(`${rig.issuer}/oauth/revoke`, { client_id: client.id, ...form })

  it('of a refresh token takes the family, the session and its access tokens along', async () => {
    const { refresh_token: token = '', access_token: access } = await getTokens(rig, client)
    const response = await revoke({ token })
    expect([response.status, await response.text()]).toEqual([200, ''])
    expect(isRevoked(access)).toBe(true)
    expect((await next(token)).error).toBe('invalid_grant')
    const { sub, tsid } = decodeJwt<{ sub: string; tsid: string }>(access)
    const caller = createCaller({ issuer: rig.issuer, subject: sub, claims: { tsid, client_id: client.id } })
    await expect(rig.server.upstreamTokens.current(caller, 'corp', 'access_token')).rejects.toMatchObject({
      code: 'no_session',
    })
  })

  it('of a refresh token is sent to the upstream if it has an endpoint, without waiting', async () => {
    const answer = Promise.withResolvers<void>()
    idpRevokes({ status: 200, after: answer.promise })
    const { refresh_token: token = '', access_token: access } = await getTokens(rig, client)
    expect((await revoke({ token })).status).toBe(200)
    expect(isRevoked(access)).toBe(true)
    await vi.waitFor(() => expect(rig.idp.count('/revoke')).toBe(1))
    expect(rig.idp.asked.find(({ path }) => path === '/revoke')?.form).toMatchObject({ token: REFRESH })
    answer.resolve()
    // A second revocation sends nothing.
    expect((await revoke({ token })).status).toBe(200)
    await rig.server.close()
    const sent = rig.idp.asked.filter(({ path }) => path === '/revoke').map(({ form }) => form['token'])
    expect(sent).toEqual([REFRESH, ACCESS])
  })

  it('that the upstream does not take is done all the same, and a line of the log', async () => {
    idpRevokes({ status: 503 })
    const { refresh_token: token = '', access_token: access } = await getTokens(rig, client)
    expect((await revoke({ token })).status).toBe(200)
    expect(isRevoked(access)).toBe(true)
    await rig.server.close()
    expect(rig.log.lines.join('')).toContain('revocation at the upstream failed')
  })

  it('of the token before takes the family along too', async () => {
    const { refresh_token: first = '' } = await getTokens(rig, client)
    const second = (await next(first)).refresh_token ?? ''
    expect((await revoke({ token: first })).status).toBe(200)
    expect((await next(second)).error).toBe('invalid_grant')
  })

  it('of an access token is unsupported_token_type', async () => {
    const { access_token: token } = await getTokens(rig, client)
    const response = await revoke({ token, token_type_hint: 'access_token' })
    expect([response.status, await response.json()]).toMatchObject([400, { error: 'unsupported_token_type' }])
    expect(isRevoked(token)).toBe(false)
  })

  it('of a token of another client changes nothing and reveals nothing', async () => {
    const { refresh_token: token = '' } = await getTokens(rig, client)
    const other = await register(rig)
    expect((await postForm(`${rig.issuer}/oauth/revoke`, { client_id: other.id, token })).status).toBe(200)
    expect((await revoke({ token: 'x' })).status).toBe(200)
    expect((await next(token)).refresh_token).toBeDefined()
  })

  it('needs a token and a client', async () => {
    expect(await (await revoke({})).json()).toMatchObject({ error: 'invalid_request' })
    const unauthenticated = await postForm(`${rig.issuer}/oauth/revoke`, { token: 'x' })
    expect(await unauthenticated.json()).toMatchObject({ error: 'invalid_request' })
  })
})
