import { createHash } from 'node:crypto'

/**
 * JSON with object keys in code-unit order and without optional whitespace: equal values give equal strings (RFC 8785
 * for the values in documents). Undefined properties are omitted.
 */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((item) => canonicalJson(item ?? null)).join(',')}]`
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value).filter(([, item]) => item !== undefined)
    // Code-unit order, not the locale's: RFC 8785 §3.2.3.
    entries.sort(([a], [b]) => (a < b ? -1 : 1))
    return `{${entries.map(([key, item]) => `${JSON.stringify(key)}:${canonicalJson(item)}`).join(',')}}`
  }
  return JSON.stringify(value ?? null)
}

/** `configHash` of a resource: first 16 hex digits of SHA-256 over the canonical JSON of its defaulted spec (decisions §6). */
export function configHash(spec: unknown): string {
  return createHash('sha256').update(canonicalJson(spec)).digest('hex').slice(0, 16)
}
