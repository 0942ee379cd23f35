import type { CacheGroup, CacheListing } from '../cache/index.ts'
import type { Readiness } from '../ops/index.ts'
import type { Purged, ReloadResult } from '../compose/index.ts'

/** Number of requests in `GET /decisions`. */
const DECISIONS = 200

/**
 * Ready while one worker is ready. Degraded while fewer run than configured, or if one is degraded. The detail is the
 * worst worker's, with the number of workers.
 */
export function mergeReadiness(answers: readonly Readiness[], wanted: number): Readiness {
  const ready = answers.filter(({ ok }) => ok)
  const isShort = answers.length < wanted
  const worst = answers.find(({ ok }) => !ok) ?? answers.find(({ degraded }) => degraded === true) ?? answers[0]
  const worstDetail = worst?.detail
  const workers = isShort ? { workers: { running: answers.length, wanted } } : {}
  const detail =
    typeof worstDetail === 'object' && worstDetail !== null ? { ...worstDetail, ...workers } : (worstDetail ?? workers)
  const isDegraded = isShort || answers.some(({ ok, degraded }) => !ok || degraded === true)
  const hasDetail = typeof detail !== 'object' || detail === null || Object.keys(detail).length > 0
  return { ok: ready.length > 0, ...(isDegraded ? { degraded: true } : {}), ...(hasDetail ? { detail } : {}) }
}

/** Merges the caches of all workers: sums, and the oldest and newest entry of each group. */
export function mergeListings(listings: readonly CacheListing[]): CacheListing {
  const sum = (of: (listing: CacheListing) => number): number => listings.reduce((all, one) => all + of(one), 0)
  const groups = new Map<string, CacheGroup>()
  for (const group of listings.flatMap((listing) => listing.groups)) {
    const id = JSON.stringify([group.config, group.issuer, group.role ?? null])
    const known = groups.get(id)
    groups.set(id, known === undefined ? group : mergeGroups(known, group))
  }
  return {
    entries: sum(({ entries }) => entries),
    maxEntries: sum(({ maxEntries }) => maxEntries),
    inFlight: sum(({ inFlight }) => inFlight),
    negative: sum(({ negative }) => negative),
    groups: [...groups.values()].toSorted((a, b) => a.config.localeCompare(b.config)),
  }
}

const mergeGroups = (a: CacheGroup, b: CacheGroup): CacheGroup => ({
  ...a,
  count: a.count + b.count,
  oldestAgeSeconds: Math.max(a.oldestAgeSeconds, b.oldestAgeSeconds),
  newestAgeSeconds: Math.min(a.newestAgeSeconds, b.newestAgeSeconds),
  soonestEndSeconds: Math.min(a.soonestEndSeconds, b.soonestEndSeconds),
})

/** The last requests of all workers, newest first. */
export function mergeDecisions(lists: readonly (readonly object[])[]): readonly object[] {
  const timeOf = (record: object): number => ('atMs' in record && typeof record.atMs === 'number' ? record.atMs : 0)
  return lists
    .flat()
    .toSorted((a, b) => timeOf(b) - timeOf(a))
    .slice(0, DECISIONS)
}

/** Successful if all reloads are; else each problem once. */
export function mergeReloads(results: readonly ReloadResult[]): ReloadResult {
  const problems = new Set(results.flatMap((result) => (result.ok ? [] : result.problems)))
  if (results.length === 0) problems.add('no worker is running')
  return problems.size === 0 ? { ok: true } : { ok: false, problems: [...problems] }
}

/** All workers share one store, and each must reach it. */
export function mergePurges(results: readonly Purged[]): Purged {
  const purged = results.reduce((sum, result) => sum + result.purged, 0)
  const notified = results.flatMap(({ isNotified }) => isNotified ?? [])
  const counts = results.flatMap(({ receivers }) => receivers ?? [])
  const receivers = counts.length === 0 ? undefined : Math.max(...counts)
  return notified.length === 0 ? { purged } : { purged, isNotified: notified.every(Boolean), receivers }
}
