import type { CacheGroup, CacheListing } from '../cache/index.ts'
import type { Readiness } from '../ops/index.ts'
import type { Purged, ReloadResult } from '../compose/index.ts'

/** How many requests `GET /decisions` shows. */
const DECISIONS = 200

/**
 * Ready as long as one worker is; degraded while fewer run than wanted, or one of them says so. The detail is that of the
 * worker that is worst off, and how many run.
 */
export function mergeReadiness(answers: readonly Readiness[], wanted: number): Readiness {
  const ready = answers.filter(({ ok }) => ok)
  const isShort = answers.length < wanted
  const worst = answers.find(({ ok }) => !ok) ?? answers.find(({ degraded }) => degraded === true) ?? answers[0]
  const told = worst?.detail
  const workers = isShort ? { workers: { running: answers.length, wanted } } : {}
  const detail = typeof told === 'object' && told !== null ? { ...told, ...workers } : (told ?? workers)
  const isDegraded = isShort || answers.some(({ ok, degraded }) => !ok || degraded === true)
  const hasDetail = typeof detail !== 'object' || detail === null || Object.keys(detail).length > 0
  return { ok: ready.length > 0, ...(isDegraded ? { degraded: true } : {}), ...(hasDetail ? { detail } : {}) }
}

/** The caches of all workers as one: their sums, and the oldest and newest of each group. */
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

/** In force when it is so everywhere; else each problem once. */
export function mergeReloads(results: readonly ReloadResult[]): ReloadResult {
  const problems = new Set(results.flatMap((result) => (result.ok ? [] : result.problems)))
  if (results.length === 0) problems.add('no worker is running')
  return problems.size === 0 ? { ok: true } : { ok: false, problems: [...problems] }
}

/** All workers share one store: each of them has to reach it. */
export function mergePurges(results: readonly Purged[]): Purged {
  const purged = results.reduce((sum, result) => sum + result.purged, 0)
  const told = results.flatMap(({ isTold }) => isTold ?? [])
  const counts = results.flatMap(({ receivers }) => receivers ?? [])
  const receivers = counts.length === 0 ? undefined : Math.max(...counts)
  return told.length === 0 ? { purged } : { purged, isTold: told.every(Boolean), receivers }
}
