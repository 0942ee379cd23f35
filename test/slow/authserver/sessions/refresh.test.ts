import { describe, expect, it } from 'vitest'
import { Failure, Secret } from '../../../../src/core/index.ts'
import type { Store } from '../../../../src/storage/index.ts'
import { START_MS } from '../../../support/ports.ts'
import { alice, createTestStore, createRig, HOUR, settle, TSID } from '../../../support/authserver/sessions/rig.ts'

const code = (expected: string) => expect.objectContaining({ code: expected })
const failed = (name: string) =>
  Promise.reject(new Failure(name === 'down' ? 'identity_provider_unavailable' : 'no_session'))

describe('refreshing upstream tokens', () => {
  it('200 requests at four replicas that need one expired token make one refresh', async () => {
    const rig = createRig()
    const replicas = await Promise.all(Array.from({ length: 4 }, () => rig.replica()))
    const [first] = replicas
    if (first === undefined) throw new Error('unreachable')
    await rig.login(first)
    rig.corp.onRefresh = async () => {
      await settle()
      return {}
    }
    rig.clock.advance(HOUR)
    const requests = Array.from({ length: 200 }, (_, index) => rig.access(replicas[index % 4] ?? first))
    expect(new Set(await Promise.all(requests))).toEqual(new Set(['access-1']))
    expect(rig.corp.refreshes).toBe(1)
    expect(rig.metrics.value('extauth_upstream_refreshes_total', 'corp', 'by_another_replica')).toBe(3)
  })

  it('50 requests for an access token and 50 for an ID token that are both due share a refresh', async () => {
    const rig = createRig()
    const sessions = await rig.replica()
    await rig.login(sessions, { idToken: new Secret('id-0'), idTokenExpiresAtMs: START_MS + HOUR })
    rig.corp.onRefresh = () => Promise.resolve({ idToken: new Secret('id-1'), idTokenExpiresAtMs: START_MS + 2 * HOUR })
    rig.clock.advance(HOUR)
    const tokens = Array.from({ length: 100 }, (_, index) =>
      sessions.current(alice(), 'corp', index % 2 === 0 ? 'access_token' : 'id_token'),
    )
    expect(new Set((await Promise.all(tokens)).map(({ token }) => token.reveal()))).toEqual(
      new Set(['access-1', 'id-1']),
    )
    expect(rig.corp.refreshes).toBe(1)
  })

  it('200 requests while the upstream is down ask it once in two seconds', async () => {
    const rig = createRig()
    const sessions = await rig.replica()
    await rig.login(sessions)
    rig.corp.onRefresh = () => failed('down')
    rig.clock.advance(HOUR)
    const burst = () => Promise.allSettled(Array.from({ length: 200 }, () => rig.access(sessions)))
    for (const result of [...(await burst()), ...(await burst())]) {
      expect(result).toMatchObject({ status: 'rejected', reason: { code: 'identity_provider_unavailable' } })
    }
    expect(rig.corp.refreshes).toBe(1)
    rig.clock.advance(2000)
    await burst()
    expect(rig.corp.refreshes).toBe(2)
  })

  it('after a failure it is asked again at once when the clock was set back', async () => {
    const rig = createRig()
    const sessions = await rig.replica()
    await rig.login(sessions, {}, { groups: ['old'] })
    rig.corp.onRefresh = () => failed('down')
    expect(await sessions.renewClaims(TSID)).toEqual({ claims: { groups: ['old'] } })
    rig.corp.onRefresh = () => Promise.resolve({ claims: { groups: ['new'] } })
    rig.clock.advance(-HOUR)
    expect(await sessions.renewClaims(TSID)).toEqual({ claims: { groups: ['new'] } })
  })

  it('50 renewals of claims at four replicas at once ask the upstream once, though nothing is due', async () => {
    const rig = createRig()
    const replicas = await Promise.all(Array.from({ length: 4 }, () => rig.replica()))
    const [first] = replicas
    if (first === undefined) throw new Error('unreachable')
    await rig.login(first, {}, { groups: ['old'] })
    rig.corp.onRefresh = async () => {
      await settle()
      return { claims: { groups: ['new'] } }
    }
    const renewals = Array.from({ length: 50 }, (_, index) => (replicas[index % 4] ?? first).renewClaims(TSID))
    for (const renewed of await Promise.all(renewals)) expect(renewed).toEqual({ claims: { groups: ['new'] } })
    expect(rig.corp.refreshes).toBe(1)
  })

  it('keeps the providers of a session apart', async () => {
    const rig = createRig()
    const sessions = await rig.replica()
    await rig.login(sessions)
    const github = { accessToken: new Secret('gh-0'), refreshToken: new Secret('ghr-0'), expiresAtMs: START_MS + HOUR }
    const tokens = { ...github, idToken: undefined, idTokenExpiresAtMs: undefined, scopes: [] }
    await sessions.addLeg(TSID, 'github', { tokens, subject: '42', claims: { email: 'other@example.com' } })
    rig.github.onRefresh = () => Promise.resolve({ accessToken: new Secret('gh-1') })
    rig.clock.advance(HOUR)
    const both = ['corp', 'github'].map(async (name) => sessions.current(alice(), name, 'access_token'))
    expect((await Promise.all(both)).map(({ token }) => token.reveal())).toEqual(['access-1', 'gh-1'])
    expect([rig.corp.refreshes, rig.github.refreshes]).toEqual([1, 1])
    // Who the user is says the first one only.
    expect(await sessions.renewClaims(TSID)).toEqual({ claims: {} })
  })

  it('a store that fails three times: the new pair is used from memory, and the session ends with it', async () => {
    const rig = createRig()
    const store = createTestStore(rig.memory)
    const sessions = await rig.replica(store)
    const other = await rig.replica()
    await rig.login(sessions)
    rig.clock.advance(HOUR)
    rig.corp.onRefresh = () => {
      store.failing.add('compareAndSet')
      return Promise.resolve({})
    }
    expect(await rig.access(sessions)).toBe('access-1')
    expect(store.calls.filter((name) => name === 'compareAndSet')).toHaveLength(1 + 3)
    expect(rig.metrics.value('extauth_upstream_refreshes_total', 'corp', 'not_stored')).toBe(1)
    // The store has recovered, but its refresh token is used up: another replica tries it once.
    store.failing.clear()
    expect(await rig.access(sessions)).toBe('access-1')
    rig.corp.onRefresh = () => failed('refused')
    await expect(rig.access(other)).rejects.toThrow(code('no_session'))
    await expect(rig.access(sessions)).rejects.toThrow(code('no_session'))
    expect(rig.corp.refreshes).toBe(2)
  })

  it('the replica that could not store its tokens does not refresh them again', async () => {
    const rig = createRig()
    const store = createTestStore(rig.memory)
    const sessions = await rig.replica(store)
    await rig.login(sessions)
    rig.clock.advance(HOUR)
    store.failing.add('compareAndSet')
    expect(await rig.access(sessions)).toBe('access-1')
    store.failing.clear()
    rig.clock.advance(HOUR)
    await expect(rig.access(sessions)).rejects.toThrow(code('no_session'))
    expect(rig.corp.refreshes).toBe(1)
    expect(sessions.isEnded(TSID)).toBe(true)
  })

  it('a write whose answer was lost counts as done', async () => {
    const rig = createRig()
    const store = createTestStore(rig.memory)
    const sessions = await rig.replica(store)
    await rig.login(sessions)
    rig.clock.advance(HOUR)
    store.losing = 'compareAndSet'
    expect(await rig.access(sessions)).toBe('access-1')
    expect(await rig.access(await rig.replica())).toBe('access-1')
    expect(rig.corp.refreshes).toBe(1)
  })

  it('a replica that dies after sending leaves one more try to another, then the caller logs in again', async () => {
    const rig = createRig()
    const dying = await rig.replica({ ...withoutHolding(rig.memory) })
    const other = await rig.replica()
    await rig.login(other)
    rig.clock.advance(HOUR)
    // The upstream rotated the token, and its response was lost.
    rig.corp.onRefresh = (_tokens, count) => (count === 1 ? new Promise(() => undefined) : failed('refused'))
    void rig.access(dying)
    await settle()
    await expect(rig.access(other)).rejects.toThrow(code('no_session'))
    expect(rig.corp.refreshes).toBe(2)
    expect(other.isEnded(TSID)).toBe(true)
  })

  it('a lock of a dead holder blocks no caller: 503 within 3 s, or the token that is still valid', async () => {
    const rig = createRig()
    const sessions = await rig.replica()
    await rig.login(sessions)
    await rig.memory.lock(`refresh:session:${TSID}`, { ttlMs: 60_000, waitMs: 0 })
    rig.clock.advance(HOUR - 30_000)
    const startedAt = performance.now()
    expect(await rig.access(sessions), 'due, but valid for 30 s').toBe('access-0')
    rig.clock.advance(30_000)
    await expect(rig.access(await rig.replica())).rejects.toMatchObject({
      code: 'identity_provider_unavailable',
      retryAfterSeconds: 1,
    })
    expect(performance.now() - startedAt).toBeLessThan(6_000)
  })

  it('has one deadline of 10 s, in which it waits for another replica too', async () => {
    const rig = createRig()
    const sessions = await rig.replica()
    await rig.login(sessions)
    const other = await rig.memory.lock(`refresh:session:${TSID}`, { ttlMs: 60_000, waitMs: 0 })
    rig.clock.advance(HOUR)
    const asked = rig.access(sessions)
    await settle()
    const releasedAt = performance.now()
    await other?.release()
    expect(await asked).toBe('access-1')
    expect(rig.corp.endsAtMs).toBeLessThan(releasedAt + 10_000)
    expect(rig.corp.endsAtMs).toBeGreaterThan(releasedAt)
  })

  it('who lost the lock and comes late takes what the next one has stored', async () => {
    const rig = createRig()
    const late = await rig.replica({ ...withoutHolding(rig.memory) })
    const other = await rig.replica()
    await rig.login(other)
    rig.clock.advance(HOUR)
    const answer = Promise.withResolvers<object>()
    rig.corp.onRefresh = (_tokens, count) => (count === 1 ? answer.promise : Promise.resolve({}))
    const waiting = rig.access(late)
    await settle()
    expect(await rig.access(other)).toBe('access-2')
    answer.resolve({ accessToken: new Secret('late') })
    expect(await waiting).toBe('access-2')
    expect(await rig.access(await rig.replica())).toBe('access-2')
  })

  it('who lost the lock before it asked does not ask', async () => {
    const rig = createRig()
    const lost = { fence: 0, isHeld: false, release: () => Promise.resolve() }
    const late = await rig.replica({ ...rig.memory, lock: () => Promise.resolve(lost) })
    await rig.login(late)
    rig.clock.advance(HOUR)
    await expect(rig.access(late)).rejects.toThrow(code('store_unavailable'))
    expect(rig.corp.refreshes).toBe(0)
    expect(await rig.access(await rig.replica())).toBe('access-1')
  })

  it('a session that ends while it is refreshed stays ended', async () => {
    const rig = createRig()
    const sessions = await rig.replica()
    const other = await rig.replica()
    await rig.login(sessions)
    rig.clock.advance(HOUR)
    const answer = Promise.withResolvers<object>()
    rig.corp.onRefresh = () => answer.promise
    const waiting = rig.access(sessions)
    await settle()
    await other.end(TSID)
    answer.resolve({})
    await expect(waiting).rejects.toThrow(code('no_session'))
    expect(await rig.memory.get(`session:${TSID}`)).toBeUndefined()
  })
})

/** The store as a replica has it whose locks run out at once, as if it had died. */
function withoutHolding(store: Store): Store {
  return {
    ...store,
    lock: () => Promise.resolve({ fence: 0, isHeld: true, release: () => Promise.resolve() }),
  }
}
