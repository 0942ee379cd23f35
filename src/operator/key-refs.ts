type Json = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)

/** Keys of objects, by object. */
export type Keys = ReadonlyMap<string, ReadonlySet<string>>

/**
 * Every `{name, key}` under a field that ends in `Ref` or `Refs`: those of ConfigMaps contain CA certificates, all others are
 * Secrets.
 */
export function keyRefsIn(value: unknown): { readonly secretKeys: Keys; readonly caBundleKeys: Keys } {
  const secretKeys = new Map<string, Set<string>>()
  const caBundleKeys = new Map<string, Set<string>>()
  const walk = (part: unknown, field: string): void => {
    if (Array.isArray(part)) for (const item of part) walk(item, field)
    else if (isObject(part)) {
      const { name, key } = part
      if (/Refs?$/.test(field) && typeof name === 'string' && typeof key === 'string') {
        const keys = field === 'configMapRef' ? caBundleKeys : secretKeys
        keys.set(name, (keys.get(name) ?? new Set()).add(key))
      } else for (const [member, inner] of Object.entries(part)) walk(inner, member)
    }
  }
  walk(value, '')
  return { secretKeys, caBundleKeys }
}

/** The union of both. */
export function mergedKeys(one: Keys, other: Keys): Map<string, Set<string>> {
  const merged = new Map([...one].map(([name, keys]) => [name, new Set(keys)]))
  for (const [name, keys] of other) merged.set(name, new Set([...(merged.get(name) ?? []), ...keys]))
  return merged
}
