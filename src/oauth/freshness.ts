import type { EpochMs } from '../core/index.ts'
import { parseHttpDate } from '../http/index.ts'

const MIN_MS = 5 * 60_000
const MAX_MS = 24 * 3_600_000
/** For responses without cache headers. */
const DEFAULT_MS = 10 * 60_000

/**
 * Freshness lifetime of a published document in milliseconds: `Cache-Control: max-age` less `Age`, else `Expires`
 * less `Date` (RFC 9111 §4.2), clamped to 5 minutes to 24 hours (decisions §2.4, authserver.md §3); `unsaidMs`
 * (default 10 minutes) without either, 5 minutes for `no-store` and `no-cache`. Header names are lower-case.
 */
export function lifetimeOf(
  headers: Readonly<Record<string, string>>,
  nowMs: EpochMs,
  unsaidMs: number = DEFAULT_MS,
): number {
  const statedMs = statedLifetime(headers, nowMs)
  return statedMs === undefined ? unsaidMs : Math.min(MAX_MS, Math.max(MIN_MS, statedMs))
}

function statedLifetime(headers: Readonly<Record<string, string>>, nowMs: EpochMs): number | undefined {
  const directives = (headers['cache-control'] ?? '')
    .toLowerCase()
    .split(',')
    .map((directive) => directive.trim())
  if (directives.includes('no-store') || directives.includes('no-cache')) return 0
  const maxAge = directives.map((directive) => /^max-age="?(\d{1,10})"?$/.exec(directive)?.[1]).find(Boolean)
  if (maxAge !== undefined) {
    const age = /^\d{1,10}$/.exec(headers['age'] ?? '')?.[0] ?? '0'
    return (Number(maxAge) - Number(age)) * 1000
  }
  const { expires } = headers
  if (expires === undefined) return undefined
  const sentMs = parseHttpDate(headers['date'] ?? '')
  const leftMs = parseHttpDate(expires) - (Number.isNaN(sentMs) ? nowMs : sentMs)
  // `Expires: 0` and other invalid dates mean "already stale" (RFC 9111 §5.3).
  return Number.isNaN(leftMs) ? 0 : leftMs
}
