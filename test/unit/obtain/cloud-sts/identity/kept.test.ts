import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { Failure, Secret } from '../../../../../src/core/index.ts'
import { createKeptIdentity } from '../../../../../src/obtain/cloud-sts/identity/kept.ts'
import type { AwsKeys } from '../../../../../src/obtain/cloud-sts/identity/keys.ts'
import { createHopMetrics } from '../../../../../src/obtain/cloud-sts/identity/hop-metrics.ts'
import { collectingLog, countingMetrics } from '../../../../support/obtain/cloud-sts/support/deps.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
let nowMs: number
let made: number
let waiting: { resolve: (keys: AwsKeys) => void; reject: (error: unknown) => void }[]
beforeEach(() => {
  nowMs = Date.UTC(2029, 5, 1)
  made = 0
  waiting = []
})
afterEach(() => vi.useRealTimers())

const keysUntil = (expiresAtMs: number): AwsKeys => ({
  accessKeyId: `ASIAKEPTKEPTKEPT${String(++made).padStart(4, '0')}`,
  secretAccessKey: new Secret('secret'),
  sessionToken: new Secret('token'),
  expiresAtMs,
})
const unavailable = () => new Failure('aws_identity_unavailable', { detail: 'instance: gone' })

function kept() {
  const { log, lines } = collectingLog()
  const { metrics, counts } = countingMetrics()
  const identity = createKeptIdentity(() => new Promise((resolve, reject) => waiting.push({ resolve, reject })), {
    clock: { now: () => nowMs },
    log,
    name: 'test',
    metrics: createHopMetrics(metrics, 'process'),
  })
  return { identity, lines, counts }
}

/** Lets what was answered arrive. */
const settle = () => new Promise((resolve) => setImmediate(resolve))
async function started(lifeMs = HOUR) {
  const { identity, lines, counts } = kept()
  const first = identity.current()
  const keys = keysUntil(nowMs + lifeMs)
  waiting.shift()?.resolve(keys)
  expect(await first).toBe(keys)
  return { identity, keys, lines, counts }
}

describe('an identity that is kept', () => {
  test('is fetched once for all who wait', async () => {
    const { identity } = kept()
    const all = [identity.current(), identity.current(), identity.current()]
    expect(waiting).toHaveLength(1)
    const keys = keysUntil(nowMs + HOUR)
    waiting[0]?.resolve(keys)
    for (const each of all) expect(await each).toBe(keys)
  })

  test('is cached until five minutes before its expiry, then renewed once while the old one stays in use', async () => {
    const { identity, keys } = await started()
    nowMs += 55 * MINUTE - 1
    expect(identity.current()).toBe(keys)
    expect(waiting).toHaveLength(0)
    nowMs += 1
    expect([identity.current(), identity.current()]).toEqual([keys, keys])
    expect(waiting).toHaveLength(1)
    const next = keysUntil(nowMs + HOUR)
    waiting[0]?.resolve(next)
    await settle()
    expect(identity.current()).toBe(next)
  })

  test('of a short life is renewed at its half', async () => {
    const { identity, keys } = await started(4 * MINUTE)
    nowMs += 2 * MINUTE - 1
    expect(identity.current()).toBe(keys)
    expect(waiting).toHaveLength(0)
    nowMs += 1
    expect(identity.current()).toBe(keys)
    expect(waiting).toHaveLength(1)
  })

  test('without an end is looked at again after five minutes', async () => {
    const { identity, keys } = await started(Infinity)
    nowMs += 5 * MINUTE
    expect(identity.current()).toBe(keys)
    expect(waiting).toHaveLength(1)
  })

  test('that can not be renewed is good until its end, then 503', async () => {
    const { identity, keys, lines, counts } = await started()
    expect(counts.get('extauth_aws_identity_ends_seconds process')).toBe(keys.expiresAtMs / 1000)
    expect(counts.get('extauth_aws_identity_obtained_seconds process')).toBe(nowMs / 1000)
    nowMs += 56 * MINUTE
    expect(identity.current()).toBe(keys)
    waiting.shift()?.reject(unavailable())
    await settle()
    expect(identity.current()).toBe(keys)
    // The failure is cached: no request follows at once.
    expect(waiting).toHaveLength(0)
    expect(counts.get('extauth_aws_hops_total process ok')).toBe(1)
    expect(counts.get('extauth_aws_hops_total process aws_identity_unavailable')).toBe(1)
    expect(lines).toMatchObject([{ reason: 'aws_identity_unavailable', detail: 'instance: gone' }])
    nowMs += 4 * MINUTE - 1
    expect(identity.current()).toBe(keys)
    waiting.shift()?.reject(unavailable())
    await settle()
    nowMs += 1
    expect(() => identity.current()).toThrow(
      expect.objectContaining({ code: 'aws_identity_unavailable', status: 503, retryAfterSeconds: 2 }),
    )
  })

  test('is asked for again after a pause that grows', async () => {
    const { identity } = kept()
    const pauses: number[] = []
    for (let round = 0; round < 8; round++) {
      const asked = identity.current()
      waiting.shift()?.reject(unavailable())
      await expect(asked).rejects.toMatchObject({ code: 'aws_identity_unavailable' })
      const failedAt = nowMs
      for (;;) {
        try {
          const next = identity.current()
          expect(next).toBeInstanceOf(Promise)
          waiting.shift()?.reject(unavailable())
          await expect(next).rejects.toMatchObject({ code: 'aws_identity_unavailable' })
          break
        } catch {
          nowMs += 500
        }
      }
      pauses.push(nowMs - failedAt)
      nowMs += 30_000
    }
    expect(pauses[0]).toBe(1_000)
    expect(Math.max(...pauses)).toBe(2_000)
  })

  test('is probed for while requests want it, so that an outage that ends is noticed within 2 s', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const pass = async (ms: number) => {
      nowMs += ms
      await vi.advanceTimersByTimeAsync(ms)
    }
    const { identity, lines } = kept()
    const asked = identity.current()
    waiting.shift()?.reject(unavailable())
    await expect(asked).rejects.toMatchObject({ retryAfterSeconds: 1, refusedForMs: 1_000 })
    await pass(1_000)
    for (let second = 0; second < 40; second += 2) {
      expect(waiting).toHaveLength(1)
      waiting.shift()?.reject(unavailable())
      await pass(2_000)
    }
    expect(lines.map((line) => JSON.stringify(line)).filter((line) => line.includes('instance: gone'))).toHaveLength(2)
    expect(waiting).toHaveLength(1)
    const keys = keysUntil(nowMs + HOUR)
    waiting.shift()?.resolve(keys)
    await pass(0)
    expect(identity.current()).toBe(keys)
    expect(waiting).toHaveLength(0)
  })

  test('is no longer probed for a minute after the last request, and when it is closed', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const { identity } = kept()
    const asked = identity.current()
    waiting.shift()?.reject(unavailable())
    await expect(asked).rejects.toThrow(/gone/)
    for (let second = 0; second < 70; second++) {
      nowMs += 1_000
      await vi.advanceTimersByTimeAsync(1_000)
      waiting.shift()?.reject(unavailable())
    }
    expect(vi.getTimerCount()).toBe(0)
    const last = identity.current()
    waiting.shift()?.reject(unavailable())
    await expect(last).rejects.toThrow(/gone/)
    expect(vi.getTimerCount()).toBe(1)
    identity.close()
    expect(vi.getTimerCount()).toBe(0)
  })

  test('that is over when it comes is none', async () => {
    const { identity } = kept()
    const asked = identity.current()
    waiting.shift()?.resolve(keysUntil(nowMs))
    await expect(asked).rejects.toMatchObject({ code: 'aws_identity_unavailable' })
  })

  test('that AWS refuses is renewed, once for all who were refused', async () => {
    const { identity, keys } = await started()
    nowMs += MINUTE
    const all = [identity.reject(keys, undefined), identity.reject(keys, undefined)]
    expect(waiting).toHaveLength(1)
    const next = keysUntil(nowMs + HOUR)
    waiting.shift()?.resolve(next)
    expect(await Promise.all(all)).toEqual([true, true])
    expect(identity.current()).toBe(next)
    expect(await identity.reject(keys, undefined)).toBe(true)
    expect(waiting).toHaveLength(0)
  })

  test('that AWS refuses at once, or that comes back the same, is not asked for in a loop', async () => {
    const { identity, keys } = await started()
    expect(await identity.reject(keys, undefined)).toBe(false)
    nowMs += MINUTE
    const again = identity.reject(keys, undefined)
    waiting.shift()?.resolve(keys)
    expect(await again).toBe(false)
    expect(await identity.reject(keys, undefined)).toBe(false)
    expect(waiting).toHaveLength(0)
  })

  test('that a backend refuses to one caller stays for a minute, and is renewed for two', async () => {
    const { identity, keys } = await started()
    nowMs += MINUTE - 1
    expect(await identity.reject(keys, 'mallory')).toBe(false)
    expect(await identity.reject(keys, 'mallory')).toBe(false)
    expect(waiting).toHaveLength(0)
    const renewed = identity.reject(keys, 'ada')
    // All are served with the refused ones meanwhile.
    expect(identity.current()).toBe(keys)
    const next = keysUntil(nowMs + HOUR)
    waiting.shift()?.resolve(next)
    expect(await renewed).toBe(true)
    expect(identity.current()).toBe(next)
    nowMs += MINUTE
    const again = identity.reject(next, 'mallory')
    waiting.shift()?.resolve(keysUntil(nowMs + HOUR))
    expect(await again).toBe(true)
  })

  test('that is refused again and again is fetched ever less often', async () => {
    const { identity } = await started()
    const fetchedAt: number[] = []
    for (let second = 0; second < 300; second++) {
      nowMs += 1_000
      const keys = await identity.current()
      const renewed = identity.reject(keys, undefined)
      for (const { resolve } of waiting.splice(0)) {
        fetchedAt.push(second)
        resolve(keysUntil(nowMs + HOUR))
      }
      await renewed
    }
    const pauses = fetchedAt.slice(1).map((at, index) => at - (fetchedAt[index] ?? 0))
    expect(pauses.slice(0, 6)).toEqual([2, 4, 8, 16, 32, 60])
    expect(new Set(pauses.slice(6))).toEqual(new Set([60]))
  })

  test('that AWS refuses is renewed, and a failure is forgotten, when the clock was set back meanwhile', async () => {
    const { identity, keys } = await started()
    nowMs -= 10 * MINUTE
    const again = identity.reject(keys, undefined)
    waiting.shift()?.reject(unavailable())
    expect(await again).toBe(false)
    nowMs -= 10 * MINUTE
    const next = keysUntil(nowMs + HOUR)
    const last = identity.reject(keys, undefined)
    waiting.shift()?.resolve(next)
    expect(await last).toBe(true)
    expect(identity.current()).toBe(next)
  })
})
