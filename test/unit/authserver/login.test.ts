import { decodeJwt, decodeProtectedHeader } from 'jose'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createSockets } from '../../support/sockets.ts'
import {
  getTokens,
  logIn,
  redeem,
  refresh,
  register,
  startRig,
  type Rig,
  type Tokens,
} from '../../support/authserver/rig.ts'

const sockets = createSockets()
let rig: Rig
beforeEach(async () => {
  rig = await startRig(sockets)
})
afterEach(() => sockets.closeAll())

describe('a login', () => {
  it('takes a client from registration over consent and the upstream to tokens', async () => {
    const client = await register(rig)
    const { answer, pkce } = await logIn(rig, client)
    expect(Object.fromEntries(answer)).toMatchObject({ state: 'state-of-the-client', iss: rig.issuer })
    const response = await redeem(rig, client, answer.get('code') ?? '', pkce)
    expect(response.status).toBe(200)
    const tokens = (await response.json()) as Tokens
    expect(tokens).toMatchObject({ token_type: 'Bearer', expires_in: 3600, scope: 'mcp:read' })
    expect(decodeProtectedHeader(tokens.access_token)).toMatchObject({ typ: 'at+jwt', alg: 'ES256' })
    expect(decodeJwt(tokens.access_token)).toMatchObject({
      iss: rig.issuer,
      aud: `${rig.url}/mcp`,
      client_id: client.id,
      scope: 'mcp:read',
      name: 'User One',
      email: 'one@example.com',
    })
  })

  it('says when the user proved who they are, as the provider has it, and no later than they came back', async () => {
    const client = await register(rig)
    const now = Math.floor(rig.clock.now() / 1000)
    const authTime = async (claim: unknown) => {
      rig.idp.claims = { auth_time: claim }
      const tokens = await getTokens(rig, client)
      const { auth_time, exp } = decodeJwt(tokens.access_token)
      // The login lasts as long as ever, however old the session at the provider is.
      rig.clock.advance(1)
      expect((await refresh(rig, client, tokens.refresh_token ?? '')).status).toBe(200)
      return [auth_time, exp]
    }
    expect(await authTime(now - 40 * 86_400)).toEqual([now - 40 * 86_400, now + 3600])
    for (const invalid of [undefined, 'x', -1, now + 4000]) expect((await authTime(invalid))[0]).toBe(now)
  })

  it('renews tokens', async () => {
    const client = await register(rig)
    const tokens = await getTokens(rig, client)
    const response = await refresh(rig, client, tokens.refresh_token ?? '')
    expect(response.status).toBe(200)
    expect(((await response.json()) as Tokens).refresh_token).not.toBe(tokens.refresh_token)
  })
})
