import type { ClaimValue, Claims } from '../core/index.ts'

/**
 * The value at a dot-notation path: a top-level field of exactly that name first, then field by field (numbers index
 * arrays); undefined without one. Parsed objects have no prototype.
 */
export function valueAt(object: Claims, path: string): ClaimValue | undefined {
  if (Object.hasOwn(object, path)) return object[path]
  let value: ClaimValue | undefined = object
  for (const name of path.split('.')) {
    if (typeof value !== 'object' || value === null) return undefined
    if (Array.isArray(value))
      value = /^\d{1,4}$/.test(name) ? (value as readonly ClaimValue[])[Number(name)] : undefined
    else value = Object.hasOwn(value, name) ? (value as Claims)[name] : undefined
  }
  return value
}
