/** Headers that mean something between two neighbours only (RFC 9110 §7.6.1, RFC 9113 §8.2.2). */
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
 * Adds the names that a `Connection` value lists to `known`, in lower case; undefined while there are none beyond the
 * usual `keep-alive`, `close` and `upgrade`, which are dropped anyway.
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
