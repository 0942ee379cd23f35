import type { EpochMs } from '../core/index.ts'
const DAY_MS = 86_400_000
/** Time before the expiry of a certificate to warn. */
const SOON_MS = 14 * DAY_MS

/** The date of a time, for messages. */
export const dayOf = (ms: number): string => (Number.isNaN(ms) ? '(no date)' : new Date(ms).toISOString().slice(0, 10))

/** Whether a time has passed, or will within 14 days. */
export function expiryOf(validToMs: EpochMs, nowMs: EpochMs): 'expired' | 'soon' | 'fine' {
  if (!(validToMs > nowMs)) return 'expired'
  return validToMs < nowMs + SOON_MS ? 'soon' : 'fine'
}
