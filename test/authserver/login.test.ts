import { decodeJwt, decodeProtectedHeader } from 'jose'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createSockets } from '../support/sockets.ts'
import { getTokens, logIn, redeem, refresh, register, startRig, type Rig, type Tokens } from './rig.ts'

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

  it('renews tokens', async () => {
    const client = await register(rig)
    const tokens = await getTokens(rig, client)
    const response = await refresh(rig, client, tokens.refresh_token ?? '')
    expect(response.status).toBe(200)
    expect(((await response.json()) as Tokens).refresh_token).not.toBe(tokens.refresh_token)
  })
})
