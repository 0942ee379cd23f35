import type { ClaimValue } from '../core/index.ts'
import { unusable } from './connection.ts'

const MAX_LENGTH = 1024

/**
 * A user identifier as string; undefined for blank strings and other types. Throws `identity_provider_error` for
 * ambiguous values; `where` names the source.
 */
export function identityText(value: ClaimValue | undefined, where: string): string | undefined {
  if (typeof value === 'number') {
    // Beyond 2^53 different numbers parse as equal, and so would two users.
    if (!Number.isSafeInteger(value)) throw unusable(`${where}: a number beyond 2^53, which is ambiguous`)
    return String(value)
  }
  if (typeof value !== 'string' || value.trim() === '') return undefined
  if (value.length > MAX_LENGTH) throw unusable(`${where}: a field is longer than ${MAX_LENGTH} characters`)
  return value
}
