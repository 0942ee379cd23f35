import { describe, expect, it } from 'vitest'
import { Failure, Secret, type UpstreamToken, type UpstreamTokens } from '../../../../src/core/index.ts'
import type { Store } from '../../../../src/storage/index.ts'
import { alice, createRig, settle, TSID } from '../../../support/authserver/sessions/rig.ts'

const tick = () => new Promise<void>((resolve) => setTimeout(resolve, Math.random() * 15))

/** A store whose answers take a while to come: what they say is what was there when they were asked. */
const slow = (store: Store): Store => ({
  ...store,
  async get(key) {
    const found = await store.get(key)
    await tick()
    return found
  },
})

/** Acts as the pipeline for a token that a backend may reject: a second attempt, and no third. */
async function request(sessions: UpstreamTokens, isGood: (token: UpstreamToken) => boolean): Promise<string> {
  const first = await sessions.current(alice(), 'corp', 'access_token')
  await tick()
  if (isGood(first)) return first.token.reveal()
  if (!(await sessions.reject(alice(), 'corp', first))) return 'no_session'
  const second = await sessions.current(alice(), 'corp', 'access_token')
  await tick()
  return isGood(second) ? second.token.reveal() : 'no_session'
}

describe('a token that the backend has revoked', () => {
  it('is refreshed once for 50 requests at a time, and all of them go on with the new one', async () => {
    const rig = createRig()
    const sessions = await rig.replica(slow(rig.memory))
    await rig.login(sessions)
    rig.corp.onRefresh = async () => {
      await settle()
      return {}
    }
    const isGood = ({ token }: UpstreamToken) => token.reveal() !== 'access-0'
    const requests = Array.from({ length: 50 }, async (_, index) => {
      await new Promise((resolve) => setTimeout(resolve, index / 3))
      return request(sessions, isGood)
    })
    expect(new Set(await Promise.all(requests))).toEqual(new Set(['access-1']))
    expect(rig.corp.refreshes).toBe(1)
  })

  it('is not returned while it is refreshed, not even from an earlier read', async () => {
    const rig = createRig()
    let late: PromiseWithResolvers<void> | undefined
    const sessions = await rig.replica({
      ...rig.memory,
      async get(key) {
        const found = await rig.memory.get(key)
        if (late !== undefined && key.startsWith('session:')) {
          const waiting = late
          late = undefined
          await waiting.promise
        }
        return found
      },
    })
    await rig.login(sessions)
    const refused = await (await rig.replica()).current(alice(), 'corp', 'access_token')
    const reading = Promise.withResolvers<void>()
    late = reading
    const early = rig.access(sessions)
    const refreshed = Promise.withResolvers<object>()
    rig.corp.onRefresh = () => refreshed.promise
    const rejecting = sessions.reject(alice(), 'corp', refused)
    await settle()
    const meanwhile = rig.access(sessions)
    await settle()
    refreshed.resolve({})
    expect([await rejecting, await meanwhile]).toEqual([true, 'access-1'])
    reading.resolve()
    expect(await early).toBe('access-1')
    expect(await rig.access(sessions)).toBe('access-1')
    expect(rig.corp.refreshes).toBe(1)
  })

  it('is not what its ID token stands for either', async () => {
    const rig = createRig()
    const sessions = await rig.replica()
    await rig.login(sessions, { idToken: new Secret('id-0') })
    const refused = await sessions.current(alice(), 'corp', 'access_token')
    const refreshed = Promise.withResolvers<object>()
    rig.corp.onRefresh = () => refreshed.promise
    const rejecting = sessions.reject(alice(), 'corp', refused)
    await settle()
    const id = sessions.current(alice(), 'corp', 'id_token')
    await settle()
    refreshed.resolve({ idToken: new Secret('id-1') })
    await rejecting
    expect((await id).token.reveal()).toBe('id-1')
    expect(await rig.access(sessions)).toBe('access-1')
  })

  it('is not refreshed again where the upstream gives the same one', async () => {
    const rig = createRig()
    const sessions = await rig.replica()
    await rig.login(sessions)
    const refused = await sessions.current(alice(), 'corp', 'access_token')
    rig.corp.onRefresh = () => Promise.resolve({ accessToken: new Secret('access-0') })
    for (const isAnother of [true, false, false]) {
      expect(await sessions.reject(alice(), 'corp', refused)).toBe(isAnother)
      expect(await rig.access(sessions)).toBe('access-0')
    }
    expect(rig.corp.refreshes).toBe(1)
  })

  it('goes on where another backend takes it, while the upstream is down', async () => {
    const rig = createRig()
    const sessions = await rig.replica()
    await rig.login(sessions)
    const refused = await sessions.current(alice(), 'corp', 'access_token')
    const answer = Promise.withResolvers<object>()
    rig.corp.onRefresh = () => answer.promise
    const rejecting = sessions.reject(alice(), 'corp', refused)
    await settle()
    const other = rig.access(sessions)
    await settle()
    answer.reject(new Failure('identity_provider_unavailable', { retryAfterSeconds: 3 }))
    await expect(rejecting).rejects.toMatchObject({ code: 'identity_provider_unavailable' })
    expect(await other).toBe('access-0')
    expect(await rig.access(sessions)).toBe('access-0')
    expect(sessions.isEnded(TSID)).toBe(false)
    expect(rig.corp.refreshes).toBe(1)
  })
})
