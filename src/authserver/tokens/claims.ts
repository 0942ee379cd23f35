import type { ClaimValue, Claims } from '../../core/index.ts'
import { RESERVED_CLAIMS } from '../../resources/index.ts'

/** Claims of the first upstream that are always copied to access tokens (authserver.md §4.7). */
const FORWARDED = ['name', 'email', 'email_verified', 'preferred_username', 'groups', 'roles', 'acr', 'amr'] as const

/** Claims that this server sets, regardless of `forwardClaims`. */
const RESERVED: ReadonlySet<string> = new Set(RESERVED_CLAIMS)

const MOST_ENTRIES = 200
const MOST_BYTES = 4 * 1024

/** Names of the claims to copy, by priority. */
export const claimNames = (forward: readonly string[]): readonly string[] =>
  [...new Set([...FORWARDED, ...forward])].filter((name) => !RESERVED.has(name))

export interface SelectedClaims {
  readonly claims: Claims
  /** Names of the claims that were too large. */
  readonly left: readonly string[]
}

/**
 * Selects the upstream's claims for an access token by priority: arrays of at most 200 entries, at most 4 KiB of JSON
 * in total; larger claims are omitted whole. `forward` extends the default names.
 */
export function selectClaims(claims: Claims, forward: readonly string[]): SelectedClaims {
  const selected: (readonly [string, ClaimValue])[] = []
  const left: string[] = []
  let bytes = 0
  for (const name of claimNames(forward)) {
    const value = claims[name]
    if (value === undefined || value === null) continue
    const size = Buffer.byteLength(JSON.stringify({ [name]: value }))
    if ((Array.isArray(value) && value.length > MOST_ENTRIES) || bytes + size > MOST_BYTES) left.push(name)
    else {
      bytes += size
      selected.push([name, value])
    }
  }
  return { claims: Object.fromEntries(selected), left }
}
