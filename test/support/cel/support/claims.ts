import type { Claims } from '../../../../src/core/index.ts'

/** Claims as the authenticator hands them out: no prototype, all the way down. */
export function claimsOf(json: string): Claims {
  return JSON.parse(json, (_name, value: unknown) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
    const bare = Object.create(null) as Record<string, unknown>
    // Entry by entry: an assignment to `__proto__` of an object with a prototype would vanish.
    for (const [name, inner] of Object.entries(value)) bare[name] = inner
    return bare
  }) as Claims
}
