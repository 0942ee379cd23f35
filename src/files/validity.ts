const DAY_MS = 86_400_000
/** So long before its end a certificate is told about. */
const SOON_MS = 14 * DAY_MS

/** The day of a time, for people. */
export const dayOf = (ms: number): string => (Number.isNaN(ms) ? '(no date)' : new Date(ms).toISOString().slice(0, 10))

/** Whether a time is over, or will be within 14 days. */
export function expiryOf(validToMs: number, nowMs: number): 'expired' | 'soon' | 'fine' {
  if (!(validToMs > nowMs)) return 'expired'
  return validToMs < nowMs + SOON_MS ? 'soon' : 'fine'
}
