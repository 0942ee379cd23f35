import type { ClaimValue, Claims } from '../../core/index.ts'
import { RESERVED_CLAIMS } from '../../resources/index.ts'

/** What of the first upstream's claims goes into our tokens without being named (authserver.md §4.7). */
const FORWARDED = ['name', 'email', 'email_verified', 'preferred_username', 'groups', 'roles', 'acr', 'amr'] as const

/** Claims that are ours to make, whatever `forwardClaims` says. */
const OURS: ReadonlySet<string> = new Set(RESERVED_CLAIMS)

const MOST_ENTRIES = 200
const MOST_BYTES = 4 * 1024

/** The names of the claims that our tokens take over, in the order in which there is room for them. */
export const claimNames = (forward: readonly string[]): readonly string[] =>
  [...new Set([...FORWARDED, ...forward])].filter((name) => !OURS.has(name))

export interface SelectedClaims {
  readonly claims: Claims
  /** Names of the claims that were too large to be taken along. */
  readonly left: readonly string[]
}

/**
 * The upstream's claims for our token, in the order in which they are named: arrays of at most 200 entries, all together at most
 * 4 KiB as JSON; what is more is left out whole. `forward` names more than the usual ones.
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
