import { decodeJwt } from 'jose'
import { afterEach, describe, expect, it } from 'vitest'
import { asFailure } from '../../../src/core/index.ts'
import { createCaller } from '../../support/ports.ts'
import { createSockets } from '../../support/sockets.ts'
import { Browser } from '../../support/authserver/browser.ts'
import {
  atUpstream,
  authorizeUrl,
  getTokens,
  makePkce,
  redeem,
  refresh,
  register,
  type Rig,
  startRig,
} from '../../support/authserver/rig.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const CLAIMS = '{"access_token":{"capolids":{"essential":true,"values":["c1"]}}}'
const TEN_MINUTES_MS = 600_000

const callerOf = (rig: Rig, token: string) => {
  const claims = decodeJwt(token)
  return createCaller({
    issuer: rig.issuer,
    subject: claims.sub ?? '',
    token,
    claims: claims as Record<string, string>,
  })
}
const claimsOf = (location: string | undefined) => new URL(location ?? '').searchParams.get('claims')

/** A user who is logged in, of whom a service wants more. */
async function demanded() {
  const rig = await startRig(sockets)
  await rig.server.opened()
  const client = await register(rig)
  const tokens = await getTokens(rig, client)
  const caller = callerOf(rig, tokens.access_token)
  await rig.server.upstreamTokens.demand(caller, 'corp', CLAIMS)
  const begin = async () => {
    const browser = new Browser()
    const pkce = makePkce()
    const asked = await browser.get(authorizeUrl(rig, client, pkce))
    const first = asked.status === 200 ? await browser.press(asked, 'continue') : asked
    return { browser, pkce, first }
  }
  return { rig, client, tokens, caller, begin }
}

describe('a service that wants more of a login', () => {
  it('ends the session: its token is of no use, and no refresh token brings another', async () => {
    const { rig, client, tokens, caller } = await demanded()
    const use = rig.server.upstreamTokens.current(caller, 'corp', 'access_token')
    expect(await use.catch((error: unknown) => asFailure(error).code)).toBe('no_session')
    expect((await refresh(rig, client, tokens.refresh_token ?? '')).status).toBe(400)
  })

  it('sends the next login of this user upstream again with claims, once the user is known', async () => {
    const { rig, client, begin } = await demanded()
    const { browser, pkce, first } = await begin()
    expect(claimsOf(first.location)).toBeNull()
    const second = await atUpstream(rig, browser, first)
    expect([second.status, claimsOf(second.location)]).toEqual([first.status, CLAIMS])
    const at = (seen: typeof first) => new URL(seen.location ?? '').searchParams
    for (const name of ['state', 'nonce', 'code_challenge']) expect(at(second).get(name)).not.toBe(at(first).get(name))
    const back = await atUpstream(rig, browser, second)
    const code = new URL(back.location ?? '').searchParams.get('code') ?? ''
    const redeemed = await redeem(rig, client, code, pkce)
    expect(redeemed.status).toBe(200)

    // The claims were requested: later logins proceed as usual.
    const later = await begin()
    const done = await atUpstream(rig, later.browser, later.first)
    expect(new URL(done.location ?? '').searchParams.get('code')).not.toBeNull()
  })

  it('is not wanted of another user', async () => {
    const { rig, begin } = await demanded()
    rig.idp.claims = { ...rig.idp.claims, sub: 'another-user' }
    const { browser, first } = await begin()
    const back = await atUpstream(rig, browser, first)
    expect(new URL(back.location ?? '').searchParams.get('code')).not.toBeNull()
  })

  it('is not wanted any more after ten minutes', async () => {
    const { rig, begin } = await demanded()
    rig.clock.advance(TEN_MINUTES_MS)
    const { browser, first } = await begin()
    const back = await atUpstream(rig, browser, first)
    expect(new URL(back.location ?? '').searchParams.get('code')).not.toBeNull()
  })

  it('can want nothing of the session of another', async () => {
    const rig = await startRig(sockets)
    await rig.server.opened()
    const client = await register(rig)
    const { access_token: token } = await getTokens(rig, client)
    const caller = callerOf(rig, token)
    const stranger = { ...caller, subject: 'stranger' }
    const refused = rig.server.upstreamTokens.demand(stranger, 'corp', CLAIMS)
    expect(await refused.catch((error: unknown) => asFailure(error).code)).toBe('no_session')
    await expect(rig.server.upstreamTokens.current(caller, 'corp', 'access_token')).resolves.toBeDefined()
  })
})
