import type { Scalar } from 'yaml'

/** Words that Go's YAML 1.1 reader parses as booleans; `true` and `false` are the same in both. */
const BOOLEANS = new Map<string, boolean>([
  ...['y', 'Y', 'yes', 'Yes', 'YES', 'on', 'On', 'ON'].map((word) => [word, true] as const),
  ...['n', 'N', 'no', 'No', 'NO', 'off', 'Off', 'OFF'].map((word) => [word, false] as const),
])

const INTEGER = /^([-+]?)(0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+|0[0-7]*|[1-9][0-9]*)$/
const FLOAT = /^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$/

/** Maximum length of a quoted scalar: longer ones are not numbers by accident. */
const MAX_SHOWN = 40

/**
 * Describes a plain scalar that differs between YAML 1.2 (here) and YAML 1.1 (kubectl and Helm); undefined for all
 * others. Dates and base 60 of YAML 1.1 are strings in both.
 */
export function otherReading({ type, tag, source, value }: Scalar): string | undefined {
  if (type !== 'PLAIN' || tag !== undefined || source === undefined || source.length > MAX_SHOWN) return undefined
  const theirs = goReading(source)
  if (theirs === undefined || theirs === value) return undefined
  const shown = (reading: unknown): string => (typeof reading === 'string' ? `the text "${reading}"` : String(reading))
  const otherwise = typeof theirs === 'string' ? '' : `, else ${theirs}`
  return `${source} is ${shown(theirs)} to kubectl and all that read YAML 1.1, and ${shown(value)} here; write "${source}" in quotes if text is meant${otherwise}`
}

/** How Go's reader (used by kubectl) resolves a plain scalar with a special meaning; undefined for other text. */
function goReading(source: string): boolean | number | string | undefined {
  const word = BOOLEANS.get(source)
  if (word !== undefined) return word
  if (!/^[-+0-9.]/.test(source)) return undefined
  // After a leading dot an underscore counts only between two digits, elsewhere anywhere.
  if (source.startsWith('.') && /_(?![0-9])|(?<![0-9])_/.test(source)) return undefined
  const plain = source.replaceAll('_', '')
  const [, inner, bits] = /^0b([-+])([01]+)$/.exec(plain) ?? []
  if (bits !== undefined) return Number(`0b${bits}`) * (inner === '-' ? -1 : 1)
  const [, sign, digits = ''] = INTEGER.exec(plain) ?? []
  if (digits !== '') {
    const octal = /^0[0-7]+$/.test(digits)
    const amount = Number(octal ? `0o${digits.slice(1)}` : digits.toLowerCase())
    return sign === '-' ? 0 - amount : amount
  }
  if (!FLOAT.test(plain)) return undefined
  // Numbers beyond the range of a float remain strings there.
  return Number.isFinite(Number(plain)) ? Number(plain) : source
}
