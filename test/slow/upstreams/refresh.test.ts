import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { after, type FailureCode, monotonicNow } from '../../../src/core/index.ts'
import { START_MS } from '../../support/ports.ts'
import { createSockets } from '../../support/sockets.ts'
import { startIdp, SUBJECT, type Answer, type Idp } from '../../support/upstreams/idp.ts'
import { callback, createRig, IN_TIME, LEG, SECRET } from '../../support/upstreams/rig.ts'

const sockets = createSockets()
let idp: Idp
beforeEach(async () => {
  idp = await startIdp(sockets)
})
afterEach(() => sockets.closeAll())

async function loggedIn() {
  const rig = createRig(sockets)
  const upstream = rig.oidc(idp)
  const { tokens } = await upstream.finish(LEG, callback(idp))
  return { ...rig, upstream, tokens }
}

describe('a refresh at an OIDC upstream', () => {
  it('brings new tokens and the claims of a new ID token', async () => {
    const { upstream, tokens } = await loggedIn()
    idp.tokens = { access_token: 'access-2', refresh_token: 'refresh-2', expires_in: 60, scope: 'openid' }
    idp.claims = { at_hash: undefined, groups: ['new'], exp: START_MS / 1000 + 900 }
    const login = await upstream.refresh(tokens, SUBJECT, IN_TIME)
    expect(login).toMatchObject({ subject: SUBJECT, claims: { groups: ['new'] } })
    expect(login.tokens).toMatchObject({
      expiresAtMs: START_MS + 60_000,
      idTokenExpiresAtMs: START_MS + 900_000,
      scopes: ['openid', 'offline_access'],
    })
    expect([login.tokens.accessToken.reveal(), login.tokens.refreshToken?.reveal()]).toEqual(['access-2', 'refresh-2'])
    expect(idp.asked.findLast(({ path }) => path === '/token')?.form).toEqual({
      grant_type: 'refresh_token',
      refresh_token: 'refresh-token-of-user-1',
      scope: tokens.scopes.join(' '),
    })
  })

  it('keeps what is not renewed: refresh token, ID token, scopes', async () => {
    const { upstream, tokens } = await loggedIn()
    idp.tokens = { access_token: 'access-2', refresh_token: undefined, id_token: undefined, expires_in: undefined }
    const login = await upstream.refresh(tokens, SUBJECT, IN_TIME)
    expect(login.claims).toEqual({})
    const { refreshToken, idToken, idTokenExpiresAtMs, scopes } = tokens
    expect(login.tokens).toMatchObject({ refreshToken, idToken, idTokenExpiresAtMs, scopes, expiresAtMs: undefined })
  })

  it.each<[string, Partial<Idp>]>([
    ['that is of another issuer', { claims: { iss: 'https://evil.example' } }],
    ['that has expired', { claims: { exp: 1 } }],
    ['whose keys can’t be had', { claims: { at_hash: undefined }, jwks: { status: 503 } }],
  ])('leaves out an ID token %s, and loses no token by it', async (_name, values) => {
    const { upstream, tokens, log, clock } = await loggedIn()
    clock.advance(3_600_000)
    Object.assign(idp, { tokens: { access_token: 'access-2' } }, values)
    const login = await upstream.refresh(tokens, SUBJECT, IN_TIME)
    expect(login.tokens.accessToken.reveal()).toBe('access-2')
    expect([login.tokens.idToken, login.claims]).toEqual([tokens.idToken, {}])
    expect(log.lines.join('\n')).toContain('the ID token of a refresh is left out')
  })

  it.each(['discovery', 'token'] as const)('waits for a provider whose %s hangs until its deadline', async (part) => {
    const { upstream, tokens, clock } = await loggedIn()
    // The discovered scopes are requested again.
    clock.advance(3 * 24 * 3_600_000)
    idp[part] = { after: new Promise(() => undefined) }
    const startedAt = monotonicNow()
    await expect(upstream.refresh(tokens, SUBJECT, after(startedAt, 200))).rejects.toMatchObject({
      code: 'identity_provider_unavailable',
    })
    expect(performance.now() - startedAt).toBeLessThan(4_000)
  })

  it.each(['jwks', 'userInfo'] as const)('does without what hangs beyond its deadline: %s', async (part) => {
    const { upstream, tokens, clock } = await loggedIn()
    clock.advance(3 * 24 * 3_600_000)
    idp.tokens = { access_token: 'access-2' }
    idp.claims = { at_hash: undefined, name: undefined, exp: clock.now() / 1000 + 900 }
    idp[part] = { after: new Promise(() => undefined) }
    const login = await upstream.refresh(tokens, SUBJECT, after(monotonicNow(), 1_000))
    expect(login.tokens.accessToken.reveal()).toBe('access-2')
    expect(login.claims['name']).toBeUndefined()
  })

  it('is not for another user', async () => {
    const { upstream, tokens } = await loggedIn()
    idp.claims = { sub: 'user-2' }
    await expect(upstream.refresh(tokens, SUBJECT, IN_TIME)).rejects.toMatchObject({ code: 'no_session' })
  })

  it('does without user info that fails', async () => {
    const { upstream, tokens } = await loggedIn()
    idp.claims = { name: undefined }
    idp.userInfo = { status: 500 }
    const { claims } = await upstream.refresh(tokens, SUBJECT, IN_TIME)
    expect(claims).toMatchObject({ email: 'one@example.com' })
  })

  it.each<[string, Answer, FailureCode]>([
    ['refused', { status: 400, body: { error: 'invalid_grant' } }, 'no_session'],
    ['refused in a 200 answer', { body: { error: 'bad_refresh_token' } }, 'no_session'],
    ['refused by a policy', { status: 400, body: { error: 'interaction_required' } }, 'no_session'],
    ['refused for a reason of its own', { status: 400, body: { error: 'token_revoked' } }, 'no_session'],
    ['refused as a request', { status: 400, body: { error: 'invalid_request' } }, 'no_session'],
    ['refused because of us', { status: 401, body: { error: 'invalid_client' } }, 'config_error'],
    ['not allowed to us', { status: 401, body: { error: 'unauthorized_client' } }, 'config_error'],
    ['in the way of an outage', { status: 502 }, 'identity_provider_unavailable'],
    [
      'sent to a realm that is not there',
      { status: 404, body: { error: 'Realm does not exist' } },
      'identity_provider_error',
    ],
    ['sent to what is no token endpoint', { status: 405, body: { error: 'invalid_grant' } }, 'identity_provider_error'],
    ['cut off', { cut: true }, 'identity_provider_unavailable'],
    ['slowed down', { status: 400, body: { error: 'slow_down' } }, 'identity_provider_unavailable'],
    ['answered by a page', { body: '<html>' }, 'identity_provider_error'],
    ['answered without a reason', { status: 403, body: '' }, 'identity_provider_error'],
  ])('%s', async (_name, answer, code) => {
    const { upstream, tokens } = await loggedIn()
    idp.token = answer
    await expect(upstream.refresh(tokens, SUBJECT, IN_TIME)).rejects.toMatchObject({ code })
  })

  it('is nothing without a refresh token', async () => {
    const { upstream, tokens } = await loggedIn()
    const none = { ...tokens, refreshToken: undefined }
    await expect(upstream.refresh(none, SUBJECT, IN_TIME)).rejects.toMatchObject({ code: 'no_session' })
  })

  it('is not sent twice when its response is lost: the token may be used up', async () => {
    const { upstream, tokens } = await loggedIn()
    const before = idp.count('/token')
    idp.token = { cut: true }
    await upstream.refresh(tokens, SUBJECT, IN_TIME).catch(() => undefined)
    expect(idp.count('/token')).toBe(before + 1)
  })

  it('reads a secret again that is refused, and repeats once with the new one', async () => {
    const { upstream, tokens, secrets } = await loggedIn()
    const old = basic(SECRET)
    idp.token = ({ headers }) =>
      headers.authorization === old
        ? { status: 401, body: { error: 'invalid_client' } }
        : { body: { access_token: 'access-2', token_type: 'bearer' } }
    const before = idp.count('/token')
    await expect(upstream.refresh(tokens, SUBJECT, IN_TIME)).rejects.toMatchObject({ code: 'config_error' })
    expect(idp.count('/token')).toBe(before + 1)
    secrets.get('idp/secret').pending = 'rotated'
    const login = await upstream.refresh(tokens, SUBJECT, IN_TIME)
    expect(login.tokens.accessToken.reveal()).toBe('access-2')
    expect(idp.count('/token')).toBe(before + 3)
    await upstream.refresh(tokens, SUBJECT, IN_TIME)
    expect(idp.count('/token')).toBe(before + 4)
  })
})

const basic = (secret: string) =>
  `Basic ${Buffer.from(`us:${new URLSearchParams([['', secret]]).toString().slice(1)}`).toString('base64')}`
