import type { Json } from './json-schema.ts'

/**
 * Removes the descriptions; only the newest version keeps them. With two copies the definition would exceed the
 * annotation of `kubectl apply` (256 KiB).
 */
export function withoutDescriptions(schema: Json): Json {
  const without = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(without)
    if (typeof value !== 'object' || value === null) return value
    const kept = Object.entries(value).filter(([name, part]) => name !== 'description' || typeof part !== 'string')
    return Object.fromEntries(kept.map(([name, part]) => [name, without(part)]))
  }
  return without(schema) as Json
}

/** Differences from the specification belong in the reference; `kubectl explain` describes behavior. */
const REFERENCE_ONLY = ' Extends the specification.'

/** Keeps the descriptions of a repeated shape (secret references, `clientAuth`) only at its first occurrence. */
export function describedOnce(schema: Json): Json {
  const described = new Set<string>()
  const look = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(look)
    if (typeof value === 'string') return value.replace(REFERENCE_ONLY, '')
    if (!isSchema(value)) return value
    const shape = isSchema(value.properties) ? JSON.stringify(value.properties, withoutDefaults) : ''
    const again = described.has(shape)
    if (shape !== '') described.add(shape)
    const parts = Object.entries(value).map(([name, part]) => [
      name,
      again && name === 'properties' && isSchema(part) ? withoutDescriptions(part) : look(part),
    ])
    return Object.fromEntries(parts) as Json
  }
  return look(schema) as Json
}

/** An alias differs only in defaults (`awsSts`). */
const withoutDefaults = (name: string, value: unknown): unknown => (name === 'default' ? undefined : value)

const isSchema = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)
