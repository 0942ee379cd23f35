/** Hop-by-hop headers (RFC 9110 §7.6.1, RFC 9113 §8.2.2). */
export const HOP_BY_HOP: readonly string[] = [
  'connection',
  'proxy-connection',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
  'proxy-authenticate',
]

/**
 * Adds the names in a `Connection` value to `known`, in lower case; undefined while there are none besides
 * `keep-alive`, `close` and `upgrade`, which are dropped anyway.
 */
export function connectionNames(value: string, known: Set<string> | undefined): Set<string> | undefined {
  if (value === 'keep-alive' || value === 'close') return known
  let names = known
  for (const part of value.split(',')) {
    const name = part.trim().toLowerCase()
    if (name === '' || name === 'keep-alive' || name === 'close' || name === 'upgrade') continue
    names ??= new Set()
    names.add(name)
  }
  return names
}
