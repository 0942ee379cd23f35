import type { Scalar } from 'yaml'

/** Words that Go's reader of YAML 1.1 takes for true and false; `true` and `false` themselves are the same in both. */
const BOOLEANS = new Map<string, boolean>([
  ...['y', 'Y', 'yes', 'Yes', 'YES', 'on', 'On', 'ON'].map((word) => [word, true] as const),
  ...['n', 'N', 'no', 'No', 'NO', 'off', 'Off', 'OFF'].map((word) => [word, false] as const),
])

const INTEGER = /^([-+]?)(0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+|0[0-7]*|[1-9][0-9]*)$/
const FLOAT = /^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$/

/** Longer ones are not repeated: nothing that long is read as a number by accident. */
const MAX_SHOWN = 40

/**
 * What is said of a plain scalar that means one thing here (YAML 1.2) and another to kubectl and Helm, whose reader is that
 * of YAML 1.1; undefined for all others. Dates and base 60, which YAML 1.1 has too, are text there as they are here.
 */
export function otherReading({ type, tag, source, value }: Scalar): string | undefined {
  if (type !== 'PLAIN' || tag !== undefined || source === undefined || source.length > MAX_SHOWN) return undefined
  const theirs = goReading(source)
  if (theirs === undefined || theirs === value) return undefined
  const shown = (reading: unknown): string => (typeof reading === 'string' ? `the text "${reading}"` : String(reading))
  const otherwise = typeof theirs === 'string' ? '' : `, else ${theirs}`
  return `${source} is ${shown(theirs)} to kubectl and all that read YAML 1.1, and ${shown(value)} here; write "${source}" in quotes if text is meant${otherwise}`
}

/** How Go's reader (the one behind kubectl) resolves a plain scalar that has a special meaning; undefined for other text. */
function goReading(source: string): boolean | number | string | undefined {
  const word = BOOLEANS.get(source)
  if (word !== undefined) return word
  if (!/^[-+0-9.]/.test(source)) return undefined
  // After a leading dot an underscore counts between two digits only, elsewhere anywhere.
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
  // What no float can hold stays text there.
  return Number.isFinite(Number(plain)) ? Number(plain) : source
}
