// Hundreds of thousands of comparisons: vitest's own cost ten times as much.
import assert from 'node:assert/strict'
import { createCredentialCache, hashKey, type CacheSlot, type Generation } from '../../../src/cache/index.ts'
import { Failure, type FailureCode } from '../../../src/core/index.ts'
import { createManualClock, createRecordingMetrics } from '../ports.ts'

/** A credential that knows for whom and with what it was made. */
export interface Made {
  readonly owner: string
  readonly fetchedAsNumber: number
  readonly endMs: number
}

export interface Identity {
  readonly issuer: string
  readonly subject: string
}

interface Call {
  readonly owner: string
  readonly number: number
  readonly key: string
  readonly resolve: (result: { value: Made; expiresAtMs: number }) => void
  readonly reject: (error: unknown) => void
}

/** Lets everything that is ready run; promises only, so no real time passes. */
export async function settleMicrotasks(): Promise<void> {
  for (let turn = 0; turn < 12; turn += 1) await Promise.resolve()
}

export const hardEnd = (obtainedAtMs: number, endMs: number) => endMs - Math.min(30_000, 0.1 * (endMs - obtainedAtMs))

/**
 * The cache, and beside it what it should hold: a plain map without bounds. Every answer of the cache is compared with
 * the map at the moment it is given.
 */
export function createWorld(bounds: { maxEntries: number; maxPerOwner: number }) {
  const clock = createManualClock()
  const metrics = createRecordingMetrics()
  let random = 0.5
  const cache = createCredentialCache<Made>({ clock, metrics, random: () => random, ...bounds })
  const isRoomy = bounds.maxEntries > 1_000
  const calls: Call[] = []
  const inFlight = new Map<string, number>()
  const live = new Map<string, { made: Made; obtainedAtMs: number; hardEndMs: number }>()
  /** Per key: credentials fetched before this number must not be returned any more. */
  const watermark = new Map<string, number>()
  const keys = new Map<string, { config: string; identity: Identity; generation: Generation }>()
  /** Per key: nothing may be fetched before this time. */
  const pausedUntil = new Map<string, number>()
  const given = new Map<string, Made>()
  const generations = new Map<string, Generation>()
  const answers: Promise<unknown>[] = []
  let number = 0
  let mostInFlight = 0
  let fetchesInPause = 0

  const generationOf = (config: string): Generation => {
    const known = generations.get(config) ?? { configHash: 'hash0', secrets: 'secrets0' }
    generations.set(config, known)
    return known
  }

  const ownerOf = (config: string, { issuer, subject }: Identity, { configHash, secrets }: Generation) =>
    [config, configHash, secrets, issuer, subject].join('|')

  const slotOf = (config: string, identity: Identity): CacheSlot<Made> => {
    const generation = generationOf(config)
    const owner = ownerOf(config, identity, generation)
    const key = hashKey([owner])
    keys.set(key, { config, identity, generation })
    return {
      key,
      scope: cache.scope(`ns/${config}`, 'tokenExchange'),
      generation,
      ...identity,
      ownerId: identity.subject,
      role: undefined,
      notAfterMs: undefined,
      deadlineMs: 10_000,
      fetch() {
        const count = (inFlight.get(key) ?? 0) + 1
        inFlight.set(key, count)
        mostInFlight = Math.max(mostInFlight, count)
        // An exception in here would look like a failed fetch, so it is checked in `checkBounds`.
        if (isRoomy && clock.now() < (pausedUntil.get(key) ?? 0)) fetchesInPause += 1
        number += 1
        const mine = number
        return new Promise((resolve, reject) => calls.push({ owner, number: mine, key, resolve, reject }))
      },
    }
  }

  const check = (slot: CacheSlot<Made>, owner: string, made: Made, since: number) => {
    assert.equal(made.owner, owner, 'another caller’s credential')
    assert.ok(made.fetchedAsNumber > since, 'a credential from before it was revoked')
    assert.ok(clock.now() < made.endMs, 'an expired credential')
    given.set(slot.key, made)
  }

  /** The map's current value of a key. */
  const expected = (key: string): Made | undefined => {
    const entry = live.get(key)
    return entry !== undefined && clock.now() < entry.hardEndMs ? entry.made : undefined
  }

  const forget = (matches: (entry: { config: string; identity: Identity; generation: Generation }) => boolean) => {
    for (const [key, entry] of keys) {
      if (!matches(entry)) continue
      live.delete(key)
      watermark.set(key, number)
      pausedUntil.delete(key)
    }
  }

  return {
    cache,
    clock,
    metrics,
    calls,
    setRandom: (value: number) => void (random = value),
    mostInFlight: () => mostInFlight,
    /** Asks; what comes later is checked when it comes (see `finish`). */
    request(config: string, identity: Identity): void {
      const slot = slotOf(config, identity)
      const owner = ownerOf(config, identity, slot.generation)
      const since = watermark.get(slot.key) ?? 0
      const wanted = expected(slot.key)
      let answer: Made | Promise<Made>
      try {
        answer = cache.get(slot)
      } catch (error) {
        assert.ok(error instanceof Failure)
        if (isRoomy) assert.equal(wanted, undefined, 'refused although there is a live one')
        return
      }
      if (!(answer instanceof Promise)) {
        check(slot, owner, answer, since)
        // Evicted ones may be missing, but what is given is what was stored last.
        assert.equal(answer, wanted)
        return
      }
      if (isRoomy) assert.equal(wanted, undefined, 'a request waits although there is a live one')
      const settled = answer.then(
        (made) => check(slot, owner, made, since),
        (error: unknown) => assert.ok(error instanceof Failure),
      )
      // Checked in `finish`; until then a failed check is not an unhandled rejection.
      settled.catch(() => undefined)
      answers.push(settled)
    },
    /** Moves the time to where something happens to the entry that ends first: its refresh is due, or it ends. */
    advanceTo(moment: 'refresh' | 'just before the end' | 'the end') {
      const [first] = [...live.values()]
        .filter(({ hardEndMs }) => hardEndMs > clock.now() + 1)
        .toSorted((a, b) => a.hardEndMs - b.hardEndMs)
      if (first === undefined) return
      const { hardEndMs, obtainedAtMs, made } = first
      const refreshMs = obtainedAtMs + 0.851 * (made.endMs - obtainedAtMs)
      const target = moment === 'refresh' ? refreshMs : moment === 'the end' ? hardEndMs : hardEndMs - 1
      clock.advance(Math.max(0, Math.ceil(target) - clock.now()))
    },
    /** Ends one call in flight with a credential of this lifetime. */
    succeed(index: number, lifetimeMs: number) {
      const [call] = calls.splice(index % Math.max(1, calls.length), 1)
      if (call === undefined) return
      inFlight.set(call.key, (inFlight.get(call.key) ?? 1) - 1)
      const now = clock.now()
      const made = { owner: call.owner, fetchedAsNumber: call.number, endMs: now + lifetimeMs }
      const entry = keys.get(call.key)
      if (lifetimeMs > 0 && entry !== undefined && call.number > (watermark.get(call.key) ?? 0)) {
        live.set(call.key, { made, obtainedAtMs: now, hardEndMs: hardEnd(now, made.endMs), ...entry })
        pausedUntil.delete(call.key)
      }
      call.resolve({ value: made, expiresAtMs: made.endMs })
    },
    /** Ends one call in flight with a failure. */
    fail(index: number, code: FailureCode, retryAfterSeconds: number | undefined) {
      const [call] = calls.splice(index % Math.max(1, calls.length), 1)
      if (call === undefined) return
      inFlight.set(call.key, (inFlight.get(call.key) ?? 1) - 1)
      if (call.number > (watermark.get(call.key) ?? 0)) {
        const least = { exchange_denied: 10, identity_provider_unavailable: 1 }[code as string] ?? 0
        const asked = least === 1 ? Math.min(30, retryAfterSeconds ?? 0) : 0
        pausedUntil.set(call.key, clock.now() + Math.max(least, asked) * 1_000)
      }
      call.reject(new Failure(code, retryAfterSeconds === undefined ? {} : { retryAfterSeconds }))
    },
    /** The backend refuses what this caller was given last. */
    reject(config: string, identity: Identity) {
      const slot = slotOf(config, identity)
      const made = given.get(slot.key)
      if (made === undefined) return
      const current = expected(slot.key)
      const mayHelp = cache.reject(slot, made)
      if (mayHelp && current === made) live.delete(slot.key)
    },
    rotateSecrets(config: string) {
      const { configHash, secrets } = generationOf(config)
      const next = { configHash, secrets: `${secrets}+` }
      generations.set(config, next)
      cache.retireSecrets(`ns/${config}`, next)
      forget((entry) => entry.config === config && entry.generation !== next)
    },
    reload(config: string) {
      const next = { configHash: `${generationOf(config).configHash}+`, secrets: 'secrets0' }
      generations.set(config, next)
      cache.retireConfigs(new Map([...generations].map(([name, { configHash }]) => [`ns/${name}`, configHash])))
      forget((entry) => entry.config === config && entry.generation !== next)
    },
    purge(filter: { subject?: string; issuer?: string; config?: string }) {
      cache.purge(filter)
      forget(
        ({ config, identity }) =>
          (filter.subject ?? identity.subject) === identity.subject &&
          (filter.issuer ?? identity.issuer) === identity.issuer &&
          (filter.config ?? config) === config,
      )
    },
    /** Ends every call, and checks every late result. */
    async finish() {
      for (let turn = 0; calls.length > 0 || turn < 2; turn += 1) {
        this.succeed(0, 3_600_000)
        await settleMicrotasks()
      }
      await Promise.all(answers)
    },
    checkBounds() {
      const { entries, groups } = cache.list()
      assert.ok(entries <= bounds.maxEntries)
      assert.equal(
        groups.reduce((sum, group) => sum + group.count, 0),
        entries,
      )
      assert.ok(mostInFlight <= 1)
      assert.equal(fetchesInPause, 0)
    },
  }
}

export type World = ReturnType<typeof createWorld>
