declare const unit: unique symbol

/** A number whose unit the type system knows. */
type Quantity<Unit extends string> = number & { readonly [unit]: Unit }

export type Milliseconds = Quantity<'milliseconds'>
export type Seconds = Quantity<'seconds'>
export type Bytes = Quantity<'bytes'>
/** A Go duration as it is written (`1h30m`), already checked; `parseGoDuration` reads it. */
export type GoDuration = string & { readonly [unit]: 'go-duration' }

/** `value` milliseconds. */
export const milliseconds = (value: number): Milliseconds => value as Milliseconds
/** `value` seconds. */
export const seconds = (value: number): Seconds => value as Seconds
/** `value` bytes. */
export const bytes = (value: number): Bytes => value as Bytes

/** Whole Go duration strings as the specification's pattern has them; `d` is not a unit. */
export const GO_DURATION = /^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$/

/** Longest delay that a Node timer takes; a longer one would fire at once. About 596 hours. */
export const LONGEST_TIMER_MS = 2_147_483_647

/** Largest Go duration, about 2.5 million hours. */
const MAX_INT64 = 2n ** 63n - 1n

const NANOSECONDS_PER: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1_000n,
  µs: 1_000n,
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
}

/**
 * Milliseconds of a Go duration, rounded up to a whole one so that no positive duration becomes "none". Undefined when
 * the text is not one (specification, `tokenLifespans`) or overflows Go's.
 */
export function parseGoDuration(text: string): Milliseconds | undefined {
  if (text.length > 64 || !GO_DURATION.test(text)) return undefined
  let total = 0n
  for (const [, whole = '0', decimals = '', name = ''] of text.matchAll(
    /([0-9]+)(?:\.([0-9]+))?(ns|us|µs|ms|s|m|h)/g,
  )) {
    const unit = NANOSECONDS_PER[name] ?? 0n
    // Decimals below a nanosecond are truncated, as in Go.
    total += BigInt(whole) * unit + (BigInt(decimals === '' ? '0' : decimals) * unit) / 10n ** BigInt(decimals.length)
  }
  if (total > MAX_INT64) return undefined
  return milliseconds(Number((total + 999_999n) / 1_000_000n))
}

/** Kubernetes quantities that are sizes: a number and a decimal or binary suffix. */
export const SIZE = /^[0-9]+(\.[0-9]+)?(k|M|G|T|Ki|Mi|Gi|Ti)?$/

const BYTES_PER: Readonly<Record<string, number>> = {
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
}

/** Bytes of a Kubernetes quantity (`16Ki`, `10M`, `512`), rounded up; undefined when it is not one. */
export function parseSize(text: string): Bytes | undefined {
  if (text.length > 32 || !SIZE.test(text)) return undefined
  const [, amount, suffix] = /^([0-9.]+)([A-Za-z]*)$/.exec(text) ?? []
  const value = Math.ceil(Number(amount) * (BYTES_PER[suffix ?? ''] ?? Number.NaN))
  return Number.isSafeInteger(value) ? bytes(value) : undefined
}
