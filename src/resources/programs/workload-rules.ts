import { parseGoDuration, type Rule } from '../../fields/index.ts'

/** Maximum lifetime of workload tokens: one day. */
const MOST_TOKEN_LIFETIME_MS = 24 * 3_600_000

/** A field with the maximum lifetime of workload tokens. */
export const tokenLifetime = (name: string): Rule => ({
  message: 'expected more than 0s and 24h at most',
  at: name,
  holds: ({ [name]: text }) => {
    const ms = typeof text === 'string' ? parseGoDuration(text) : undefined
    // An invalid duration is reported separately.
    return ms === undefined || (ms > 0 && ms <= MOST_TOKEN_LIFETIME_MS)
  },
  cel: `!has(self.${name}) || (duration(self.${name}) > duration('0s') && duration(self.${name}) <= duration('24h'))`,
})
