import { describe, expect, it } from 'vitest'
import { Failure, Secret } from '../../../../src/core/index.ts'
import { START_MS } from '../../../support/ports.ts'
import { alice, createTestStore, createRig, HOUR, TSID } from '../../../support/authserver/sessions/rig.ts'

const code = (expected: string) => expect.objectContaining({ code: expected })

describe('upstream tokens on requests', () => {
  it('returns the session’s token only to a caller of the same subject and client', async () => {
    const rig = createRig()
    const sessions = await rig.replica()
    await rig.login(sessions)
    expect(await rig.access(sessions)).toBe('access-0')
    const others = [
      alice({ subject: 'bob' }),
      alice({ clientId: 'other' }),
      alice({ issuer: 'https://elsewhere.example.com' }),
      alice({ tsid: 'BBBBBBBBBBBBBBBBBBBBBB' }),
    ]
    for (const other of others) {
      // From the store by one replica, from memory by the other.
      await expect(rig.access(sessions, other)).rejects.toThrow(code('no_session'))
      await expect(rig.access(await rig.replica(), other)).rejects.toThrow(code('no_session'))
      await expect(
        sessions.reject(other, 'corp', await sessions.current(alice(), 'corp', 'access_token')),
      ).rejects.toThrow(code('no_session'))
    }
    expect(rig.metrics.value('extauth_upstream_sessions_total', 'mismatch')).toBeGreaterThan(0)
    // None of it ended the session of the right one.
    expect(await rig.access(sessions)).toBe('access-0')
  })

  it('asks the store once and then answers from memory until 60 s before the end', async () => {
    const rig = createRig()
    const store = createTestStore(rig.memory)
    const sessions = await rig.replica(store)
    await rig.login(sessions)
    await rig.access(sessions)
    const before = store.calls.length
    rig.clock.advance(HOUR - 60_001)
    expect(await rig.access(sessions)).toBe('access-0')
    expect(store.calls.length).toBe(before)
    rig.clock.advance(1)
    expect(await rig.access(sessions)).toBe('access-1')
    expect(rig.corp.refreshes).toBe(1)
  })

  it('refreshes a short-lived token after four fifths of its life', async () => {
    const rig = createRig()
    const sessions = await rig.replica()
    await rig.login(sessions, { expiresAtMs: START_MS + 30_000 })
    rig.clock.advance(23_000)
    expect(await rig.access(sessions)).toBe('access-0')
    rig.clock.advance(1001)
    expect(await rig.access(sessions)).toBe('access-1')
  })

  it('stores the new pair before anybody uses it', async () => {
    const rig = createRig()
    const sessions = await rig.replica()
    await rig.login(sessions)
    rig.clock.advance(HOUR)
    expect(await rig.access(sessions)).toBe('access-1')
    expect(await rig.access(await rig.replica())).toBe('access-1')
    expect(rig.corp.refreshes).toBe(1)
  })

  it('keeps a token without an end until a backend refuses it, then refreshes once', async () => {
    const rig = createRig()
    const sessions = await rig.replica()
    await rig.login(sessions, { expiresAtMs: undefined })
    rig.clock.advance(20 * 24 * HOUR)
    const refused = await sessions.current(alice(), 'corp', 'access_token')
    expect([refused.token.reveal(), refused.expiresAtMs]).toEqual(['access-0', undefined])
    expect(await sessions.reject(alice(), 'corp', refused)).toBe(true)
    expect(await rig.access(sessions)).toBe('access-1')
    // Refused by many at once: the second finds another token there already.
    expect(await sessions.reject(alice(), 'corp', refused)).toBe(true)
    expect(rig.corp.refreshes).toBe(1)
    const again = await sessions.current(alice(), 'corp', 'access_token')
    expect(await sessions.reject(alice(), 'corp', again)).toBe(false)
    expect(await rig.access(sessions)).toBe('access-1')
    expect(rig.corp.refreshes).toBe(1)
  })

  it('refreshes a refused token however new it is', async () => {
    const rig = createRig()
    const sessions = await rig.replica()
    await rig.login(sessions)
    const refused = await sessions.current(alice(), 'corp', 'access_token')
    expect(await sessions.reject(alice(), 'corp', refused)).toBe(true)
    expect(await rig.access(sessions)).toBe('access-1')
  })

  it('asks for a login when a refused token can’t be renewed', async () => {
    const rig = createRig()
    const sessions = await rig.replica()
    await rig.login(sessions, { expiresAtMs: undefined, refreshToken: undefined })
    const refused = await sessions.current(alice(), 'corp', 'access_token')
    await expect(sessions.reject(alice(), 'corp', refused)).rejects.toThrow(code('no_session'))
    expect(sessions.isEnded(TSID)).toBe(true)
  })

  it('uses a token without a refresh token to its end, then asks for a login', async () => {
    const rig = createRig()
    const sessions = await rig.replica()
    await rig.login(sessions, { refreshToken: undefined })
    rig.clock.advance(HOUR - 1)
    expect(await rig.access(sessions)).toBe('access-0')
    rig.clock.advance(1)
    await expect(rig.access(sessions)).rejects.toThrow(code('no_session'))
    expect(sessions.isEnded(TSID)).toBe(true)
  })

  it('ends the session when the upstream refuses the refresh token', async () => {
    const rig = createRig()
    const sessions = await rig.replica()
    await rig.login(sessions)
    rig.corp.onRefresh = () => Promise.reject(new Failure('no_session'))
    rig.clock.advance(HOUR)
    await expect(rig.access(sessions)).rejects.toThrow(code('no_session'))
    await expect(rig.access(sessions)).rejects.toThrow(code('no_session'))
    expect(rig.corp.refreshes).toBe(1)
    expect(await sessions.renewClaims(TSID)).toBeUndefined()
    expect(rig.metrics.value('extauth_upstream_refreshes_total', 'corp', 'refused')).toBe(1)
  })

  it('goes on with a live token while the upstream is down, and says 503 after', async () => {
    const rig = createRig()
    const sessions = await rig.replica()
    await rig.login(sessions)
    rig.corp.onRefresh = () => Promise.reject(new Failure('identity_provider_unavailable', { retryAfterSeconds: 3 }))
    rig.clock.advance(HOUR - 30_000)
    expect(await rig.access(sessions)).toBe('access-0')
    expect(await rig.access(sessions)).toBe('access-0')
    expect(rig.corp.refreshes).toBe(1)
    rig.clock.advance(30_000)
    await expect(rig.access(sessions)).rejects.toThrow(code('identity_provider_unavailable'))
    rig.corp.onRefresh = () => Promise.resolve({})
    rig.clock.advance(2000)
    expect(await rig.access(sessions)).toBe('access-3')
  })

  it('goes on with a live token while the store is down, and says 503 to the others', async () => {
    const rig = createRig()
    const store = createTestStore(rig.memory)
    const sessions = await rig.replica(store)
    const other = await rig.replica(store)
    await rig.login(sessions)
    await rig.access(sessions)
    for (const name of ['get', 'lock', 'compareAndSet'] as const) store.failing.add(name)
    expect(await rig.access(sessions)).toBe('access-0')
    await expect(rig.access(other)).rejects.toThrow(code('store_unavailable'))
    store.failing.clear()
    expect(await rig.access(other)).toBe('access-0')
  })

  it('gives ID tokens by their own end, and asks for a login when none is renewed', async () => {
    const rig = createRig()
    const sessions = await rig.replica()
    await rig.login(sessions, { idToken: new Secret('id-0'), idTokenExpiresAtMs: START_MS + 600_000 })
    const id = async () => (await sessions.current(alice(), 'corp', 'id_token')).token.reveal()
    expect(await id()).toBe('id-0')
    rig.corp.onRefresh = (_tokens, count) =>
      Promise.resolve(count === 1 ? { idToken: new Secret('id-1'), idTokenExpiresAtMs: rig.clock.now() + 600_000 } : {})
    rig.clock.advance(600_000)
    expect(await id()).toBe('id-1')
    expect(await rig.access(sessions)).toBe('access-1')
    rig.clock.advance(600_000)
    await expect(id()).rejects.toThrow(code('no_session'))
    expect(sessions.isEnded(TSID)).toBe(true)
  })

  it('has no ID token where the upstream gave none, and nothing of a provider that was not visited', async () => {
    const rig = createRig()
    const sessions = await rig.replica()
    await rig.login(sessions)
    await expect(sessions.current(alice(), 'corp', 'id_token')).rejects.toThrow(code('no_session'))
    await expect(sessions.current(alice(), 'github', 'access_token')).rejects.toThrow(code('no_session'))
    expect(await rig.access(sessions)).toBe('access-0')
  })

  it('outlives its own end by nothing', async () => {
    const rig = createRig()
    const sessions = await rig.replica()
    await rig.login(sessions, { expiresAtMs: undefined })
    await rig.access(sessions)
    rig.clock.advance(30 * 24 * HOUR)
    await expect(rig.access(sessions)).rejects.toThrow(code('no_session'))
  })
})
