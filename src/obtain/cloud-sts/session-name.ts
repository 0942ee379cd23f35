import { createHash } from 'node:crypto'

const LONGEST = 64
const SHORTEST = 2
const SUFFIX = 17
/** Characters that STS rejects in a RoleSessionName; each is replaced. */
const ILLEGAL = /[^A-Za-z0-9_+=,.@-]/gu
const LOOKS_DERIVED = /-[0-9a-f]{16}$/i

/** A role session name, and how it differs from the claim. */
export interface SessionName {
  readonly name: string
  /** Empty when the name equals the claim. */
  readonly changes: readonly ('characters_replaced' | 'too_long' | 'too_short' | 'looks_derived')[]
}

/**
 * The role session name of a claim (decisions §3.5): what STS does not take becomes `-`; a name that was changed, is too
 * long or too short, or looks as if it had been derived, is truncated and ends in 16 hex digits of SHA-256 over issuer, caller's
 * identity and the whole claim, so that neither two callers nor two values ever share one by being changed.
 */
export function sessionNameOf(claim: string, issuer: string, identity: string): SessionName {
  const legal = claim.replace(ILLEGAL, '-')
  const changes: SessionName['changes'][number][] = []
  if (legal !== claim) changes.push('characters_replaced')
  if (legal.length > LONGEST) changes.push('too_long')
  if (legal.length < SHORTEST) changes.push('too_short')
  if (LOOKS_DERIVED.test(legal)) changes.push('looks_derived')
  if (changes.length === 0) return { name: legal, changes }
  // JSON, so that the parts can't run together.
  const digest = createHash('sha256')
    .update(JSON.stringify([issuer, identity, claim]))
    .digest('hex')
    .slice(0, SUFFIX - 1)
  return { name: `${legal.slice(0, LONGEST - SUFFIX)}-${digest}`, changes }
}
