import { afterEach, expect, it } from 'vitest'
import { createSockets } from '../../support/sockets.ts'
import { getTokens, LIMITS, postForm, refresh, register, startRig } from '../../support/authserver/rig.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

it('the audit trail has registrations, consents, logins, tokens, reuse, revocations and new keys, and no token', async () => {
  const rig = await startRig(sockets, { spec: { limits: LIMITS } })
  const client = await register(rig)
  const tokens = await getTokens(rig, client)
  const first = tokens.refresh_token ?? ''
  const { refresh_token: second = '' } = (await (await refresh(rig, client, first)).json()) as typeof tokens
  rig.clock.advance(30_001)
  expect((await refresh(rig, client, first)).status).toBe(400)
  const again = await getTokens(rig, client)
  const revocation = await postForm(`${rig.issuer}/oauth/revoke`, {
    token: again.refresh_token ?? '',
    client_id: client.id,
    ...(client.secret === undefined ? {} : { client_secret: client.secret }),
  })
  expect(revocation.status).toBe(200)
  rig.secrets.get('as/hmac').set('another HMAC secret of more than thirty-two bytes')
  await register(rig)

  const got = rig.notices.map(({ type, outcome, target }) => [type, outcome, target?.type])
  expect(got).toEqual([
    ['client_registered', 'success', undefined],
    ['consent', 'success', 'resource'],
    ['login', 'success', 'resource'],
    ['token_issued', 'success', 'resource'],
    ['token_issued', 'success', 'resource'],
    ['token_reused', 'denied', 'session'],
    ['session_revoked', 'success', 'session'],
    ['consent', 'success', 'resource'],
    ['login', 'success', 'resource'],
    ['token_issued', 'success', 'resource'],
    ['session_revoked', 'success', 'session'],
    ['key_rotated', 'success', 'keys'],
    ['client_registered', 'success', undefined],
  ])
  expect(new Set(rig.notices.map(({ component }) => component))).toEqual(new Set(['default/as']))
  expect(new Set(rig.notices.map((notice) => notice.client))).toEqual(new Set(['127.0.0.1']))
  expect(rig.notices.find(({ type }) => type === 'login')).toMatchObject({
    clientId: client.id,
    userId: expect.any(String) as string,
    target: { name: `${rig.url}/mcp` },
    details: { providers: ['corp'] },
  })
  const text = JSON.stringify(rig.notices)
  for (const token of [first, second, tokens.access_token, again.access_token, again.refresh_token ?? ''])
    expect(text).not.toContain(token)
})
