import { createCredentialCache, hashKey, type CacheSlot, type Generation } from '../../../src/cache/index.ts'
import { createManualClock, createRecordingMetrics } from '../ports.ts'

interface Call {
  succeed(value: string, lifetimeMs: number): void
  fail(error: unknown): void
}

export interface SlotOptions {
  readonly subject?: string
  readonly issuer?: string
  readonly config?: string
  readonly role?: string
  readonly notAfterMs?: number
  readonly tokenDigest?: string
  readonly generation?: Generation
  readonly part?: string
}

/** A cache with a clock that stands still, and slots whose calls a test ends by hand. */
export function createHarness(
  bounds: { maxEntries?: number; maxPerOwner?: number; maxBytes?: number; weigh?: (value: string) => number } = {},
) {
  const clock = createManualClock()
  const metrics = createRecordingMetrics()
  const cache = createCredentialCache<string>({ clock, metrics, random: () => 0.5, ...bounds })
  const calls: Call[] = []

  const slot = (options: SlotOptions = {}): CacheSlot<string> => {
    const { subject = 'alice', issuer = 'https://id.example', config = 'ns/github', role, part = '' } = options
    const generation = options.generation ?? { configHash: 'h', secrets: 's' }
    return {
      key: hashKey([config, generation.configHash, generation.secrets, issuer, subject, role ?? '', part]),
      scope: cache.scope(config, 'tokenExchange'),
      generation,
      issuer,
      subject,
      ownerId: subject,
      role,
      notAfterMs: options.notAfterMs,
      tokenDigest: options.tokenDigest,
      deadlineMs: 10_000,
      fetch: () =>
        new Promise((resolve, reject) =>
          calls.push({
            succeed: (value, lifetimeMs) => resolve({ value, expiresAtMs: clock.now() + lifetimeMs }),
            fail: reject,
          }),
        ),
    }
  }

  /** Asks on an empty cache and answers at once. */
  const fill = async (options: SlotOptions, value: string, lifetimeMs = 3_600_000): Promise<void> => {
    const answer = cache.get(slot(options))
    await Promise.resolve()
    calls.pop()?.succeed(value, lifetimeMs)
    await answer
  }

  return { cache, clock, metrics, calls, slot, fill }
}
