import type { ClaimValue } from '../core/index.ts'
import { unusable } from './connection.ts'

const MAX_LENGTH = 1024

/**
 * What says who somebody is, as text; undefined for what is neither text nor number, and for nothing but spaces. Throws
 * `identity_provider_error` for what may be another's name as well; `where` is our word for who said it.
 */
export function identityText(value: ClaimValue | undefined, where: string): string | undefined {
  if (typeof value === 'number') {
    // Beyond 2^53 two numbers are read as one, and two users would be.
    if (!Number.isSafeInteger(value)) throw unusable(`${where}: a number that can't be told from its neighbours`)
    return String(value)
  }
  if (typeof value !== 'string' || value.trim() === '') return undefined
  if (value.length > MAX_LENGTH) throw unusable(`${where}: a field is longer than ${MAX_LENGTH} characters`)
  return value
}
