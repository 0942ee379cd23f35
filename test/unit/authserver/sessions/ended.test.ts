import { describe, expect, it, vi } from 'vitest'
import { Secret } from '../../../../src/core/index.ts'
import type { Store, StoreListener } from '../../../../src/storage/index.ts'
import { START_MS } from '../../../support/ports.ts'
import {
  alice,
  createTestStore,
  createRig,
  HOUR,
  settle,
  tokenSet,
  TSID,
} from '../../../support/authserver/sessions/rig.ts'

const code = (expected: string) => expect.objectContaining({ code: expected })

describe('sessions that end', () => {
  it('are refused by every replica, and nothing of them is left in the store', async () => {
    const rig = createRig()
    const [one, two] = [await rig.replica(), await rig.replica()]
    await rig.login(one)
    expect([await rig.access(one), await rig.access(two)]).toEqual(['access-0', 'access-0'])
    await one.end(TSID)
    for (const sessions of [one, two]) {
      expect(sessions.isEnded(TSID)).toBe(true)
      await expect(rig.access(sessions)).rejects.toThrow(code('no_session'))
      expect(await sessions.renewClaims(TSID)).toBeUndefined()
    }
    expect(await rig.memory.get(`session:${TSID}`)).toBeUndefined()
    await two.end(TSID)
    await one.end('neverwasneverwasnever0')
  })

  it('are known to a replica that starts later, for as long as a token may be shown', async () => {
    const rig = createRig()
    await (await rig.replica()).end(TSID)
    const later = await rig.replica()
    expect(later.isEnded(TSID)).toBe(true)
    rig.clock.advance(HOUR)
    await later.end('BBBBBBBBBBBBBBBBBBBBBB')
    expect(later.isEnded(TSID)).toBe(false)
    expect((await rig.replica()).isEnded(TSID)).toBe(false)
  })

  it('are known to a replica that missed the message', async () => {
    const rig = createRig()
    const listeners: StoreListener[] = []
    const deaf: Store = Object.assign(Object.create(rig.memory) as Store, {
      subscribe: (_channel: string, listener: StoreListener) => {
        listeners.push(listener)
        return { close: () => undefined }
      },
    })
    const sessions = await rig.replica(deaf)
    await rig.login(sessions)
    await rig.access(sessions)
    await (await rig.replica()).end(TSID)
    expect(sessions.isEnded(TSID)).toBe(false)
    for (const listener of listeners) listener.onGap()
    await settle()
    expect(sessions.isEnded(TSID)).toBe(true)
    await expect(rig.access(sessions)).rejects.toThrow(code('no_session'))
  })

  it('are all in the list when hundreds end at once', async () => {
    const rig = createRig()
    const [one, two] = [await rig.replica(), await rig.replica()]
    const names = Array.from({ length: 300 }, (_, index) => `session-of-a-user-${String(index).padStart(3, '0')}`)
    await Promise.all(names.map(async (tsid, index) => (index % 2 === 0 ? one : two).end(tsid)))
    const later = await rig.replica()
    expect(names.filter((tsid) => !later.isEnded(tsid))).toEqual([])
  })

  it('are rejected by this replica even if the store can’t be written, which the caller sees', async () => {
    const rig = createRig()
    const store = createTestStore(rig.memory)
    const sessions = await rig.replica(store)
    await rig.login(sessions)
    store.failing.add('publish')
    await expect(sessions.end(TSID)).rejects.toThrow(code('store_unavailable'))
    expect(sessions.isEnded(TSID)).toBe(true)
  })

  it('a replica that has never seen the list says 503 and not "fine"', async () => {
    const rig = createRig()
    const store = createTestStore(rig.memory)
    store.failing.add('get')
    const sessions = await rig.replica(store)
    expect(() => sessions.isEnded(TSID)).toThrow(code('store_unavailable'))
    await expect(rig.access(sessions)).rejects.toThrow(code('store_unavailable'))
    store.failing.clear()
    await vi.waitFor(() => expect(sessions.isEnded(TSID)).toBe(false), { timeout: 10_000 })
    await sessions.close()
  })
})

describe('what is kept', () => {
  it('takes no second session of one name, and no leg of a session that is over', async () => {
    const rig = createRig()
    const sessions = await rig.replica()
    await rig.login(sessions)
    await expect(rig.login(sessions)).rejects.toThrow(code('internal_error'))
    await sessions.end(TSID)
    const leg = sessions.addLeg(TSID, 'github', { tokens: tokenSet(), subject: '42', claims: {} })
    await expect(leg).rejects.toThrow(code('no_session'))
  })

  it('is nowhere in clear text in the store or in the log', async () => {
    const rig = createRig()
    const store = createTestStore(rig.memory)
    const sessions = await rig.replica(store)
    await rig.login(sessions, { idToken: new Secret('id-token-0') }, { email: 'alice@example.com' })
    rig.clock.advance(HOUR)
    await rig.access(sessions)
    const everything = [...store.written, ...rig.log.lines, rig.metrics.text()].join('\n')
    for (const text of ['access-', 'refresh-0', 'refresh-1', 'id-token-0', 'alice', 'editor', 'user-1']) {
      expect(everything).not.toContain(text)
    }
  })

  it('is sealed again when it is read after a secret rotation, and readable by replicas with the older secret', async () => {
    const rig = createRig()
    await rig.login(await rig.replica(rig.memory, ['hmac']))
    const before = await rig.memory.get(`session:${TSID}`)
    const [old, rotated] = [
      await rig.replica(rig.memory, ['hmac', 'next']),
      await rig.replica(rig.memory, ['next', 'hmac']),
    ]
    expect(await rig.access(rotated)).toBe('access-0')
    expect((await rig.memory.get(`session:${TSID}`))?.value).not.toEqual(before?.value)
    expect(await rig.access(old)).toBe('access-0')
    await rig.access(await rig.replica(rig.memory, ['next', 'hmac']))
    expect(await rig.access(await rig.replica(rig.memory, ['next']))).toBe('access-0')
    await expect(rig.access(await rig.replica(rig.memory, ['hmac']))).rejects.toThrow(code('store_unavailable'))
  })
})

describe('claims for our tokens', () => {
  it('are those of the login, of the names that are kept, where the upstream says nothing new', async () => {
    const rig = createRig()
    const sessions = await rig.replica()
    await rig.login(sessions, {}, { name: 'Alice', email: 'a@example.com', groups: ['dev'], phone: '1' })
    expect(await sessions.renewClaims(TSID)).toEqual({
      claims: { name: 'Alice', email: 'a@example.com', groups: ['dev'] },
    })
    expect(rig.corp.refreshes).toBe(1)
  })

  it('are those of the new ID token after; what is gone there is gone, a name from user info stays', async () => {
    const rig = createRig()
    const sessions = await rig.replica()
    const idToken = { idToken: new Secret('id-0'), idTokenExpiresAtMs: START_MS + 600_000 }
    await rig.login(sessions, idToken, { name: 'Alice', email: 'a@example.com', email_verified: true, groups: ['dev'] })
    const renewed = { idToken: new Secret('id-1'), idTokenExpiresAtMs: START_MS + HOUR }
    rig.corp.onRefresh = () => Promise.resolve({ ...renewed, claims: { sub: 'user-1', email: 'b@example.com' } })
    expect(await sessions.renewClaims(TSID)).toEqual({ claims: { name: 'Alice', email: 'b@example.com' } })
    expect(rig.corp.refreshes).toBe(1)
    expect(await sessions.renewClaims(TSID)).toEqual({ claims: { name: 'Alice', email: 'b@example.com' } })
    expect(rig.corp.refreshes).toBe(2)
  })

  it('stay as they were where the upstream has nothing to renew them with', async () => {
    const rig = createRig()
    const sessions = await rig.replica()
    await rig.login(sessions, { refreshToken: undefined }, { name: 'Alice' })
    rig.clock.advance(3 * HOUR)
    expect(await sessions.renewClaims(TSID)).toEqual({ claims: { name: 'Alice' } })
  })

  it('are none of a session that never was', async () => {
    const rig = createRig()
    expect(await (await rig.replica()).renewClaims(TSID)).toBeUndefined()
    await expect(rig.access(await rig.replica(), alice())).rejects.toThrow(code('no_session'))
  })
})
