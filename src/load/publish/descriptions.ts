import type { Json } from './json-schema.ts'

/**
 * A schema without what it says to people, who are shown the newest version: with it twice, `kubectl apply` could not keep
 * the definition in its annotation, which has room for 256 KiB.
 */
export function withoutDescriptions(schema: Json): Json {
  const without = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(without)
    if (typeof value !== 'object' || value === null) return value
    const kept = Object.entries(value).filter(([name, said]) => name !== 'description' || typeof said !== 'string')
    return Object.fromEntries(kept.map(([name, part]) => [name, without(part)]))
  }
  return without(schema) as Json
}

/** Where a field differs from the specification is for the reference: `kubectl explain` shows what it does. */
const REFERENCE_ONLY = ' Extends the specification.'

/** A schema whose shapes that come again (references to secrets, `clientAuth`) say what is in them where they come first. */
export function describedOnce(schema: Json): Json {
  const said = new Set<string>()
  const look = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(look)
    if (typeof value === 'string') return value.replace(REFERENCE_ONLY, '')
    if (!isSchema(value)) return value
    const shape = isSchema(value.properties) ? JSON.stringify(value.properties, withoutDefaults) : ''
    const again = said.has(shape)
    if (shape !== '') said.add(shape)
    const parts = Object.entries(value).map(([name, part]) => [
      name,
      again && name === 'properties' && isSchema(part) ? withoutDescriptions(part) : look(part),
    ])
    return Object.fromEntries(parts) as Json
  }
  return look(schema) as Json
}

/** An alias differs in defaults only (`awsSts`). */
const withoutDefaults = (name: string, value: unknown): unknown => (name === 'default' ? undefined : value)

const isSchema = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)
