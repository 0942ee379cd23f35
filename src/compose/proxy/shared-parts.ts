/** Gives what `make` gives, made once for each `owner` and each `key` (by its JSON). */
export type SharedParts = <T>(owner: object, key: unknown, make: () => T) => T

/**
 * What routes have alike, once: thousands of equal objects don't fit into the caches of a processor, and each request
 * would wait for its own. The key must tell everything by which parts of one owner differ, their kind included.
 */
export function createSharedParts(): SharedParts {
  const made = new Map<object, Map<string, unknown>>()
  return <T>(owner: object, key: unknown, make: () => T): T => {
    const own = made.get(owner) ?? new Map<string, unknown>()
    made.set(owner, own)
    const text = JSON.stringify(key)
    if (!own.has(text)) own.set(text, make())
    // The key says the kind, so what is there was made by the same line.
    return own.get(text) as T
  }
}
