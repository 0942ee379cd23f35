import type { EpochMs } from '../core/index.ts'
import type { Ownership } from './slot.ts'

/** Number of credentials of one config, issuer and role. */
export interface CacheGroup {
  readonly config: string
  readonly type: string
  readonly issuer: string
  readonly role?: string
  readonly count: number
  readonly oldestAgeSeconds: number
  readonly newestAgeSeconds: number
  /** Until the first of them expires. */
  readonly soonestEndSeconds: number
}

/** Response of `GET /cache`: counts and ages; no subjects, keys or credentials. */
export interface CacheListing {
  readonly entries: number
  readonly maxEntries: number
  readonly inFlight: number
  readonly negative: number
  readonly groups: readonly CacheGroup[]
}

export interface Aged extends Ownership {
  readonly obtainedAtMs: EpochMs
  readonly endMs: EpochMs
}

/** Counts entries by config, issuer and role, ordered by config. */
export function groupEntries(entries: Iterable<Aged>, nowMs: EpochMs): CacheGroup[] {
  const groups = new Map<string, CacheGroup>()
  for (const { scope, issuer, role, obtainedAtMs, endMs } of entries) {
    const id = JSON.stringify([scope.config, issuer, role ?? null])
    const known = groups.get(id)
    const age = Math.max(0, Math.floor((nowMs - obtainedAtMs) / 1_000))
    const left = Math.max(0, Math.floor((endMs - nowMs) / 1_000))
    groups.set(id, {
      config: scope.config,
      type: scope.type,
      issuer,
      ...(role === undefined ? {} : { role }),
      count: (known?.count ?? 0) + 1,
      oldestAgeSeconds: Math.max(known?.oldestAgeSeconds ?? 0, age),
      newestAgeSeconds: Math.min(known?.newestAgeSeconds ?? Infinity, age),
      soonestEndSeconds: Math.min(known?.soonestEndSeconds ?? Infinity, left),
    })
  }
  return [...groups.values()].toSorted((a, b) => a.config.localeCompare(b.config))
}
