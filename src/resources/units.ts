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

const MILLISECONDS_PER: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
}

/** Longest delay that a Node timer takes; a longer one would fire at once. About 596 hours. */
export const LONGEST_TIMER_MS = 2_147_483_647

/** Largest Go duration (int64 nanoseconds), about 2.5 million hours. */
const LONGEST_GO_DURATION_MS = 9_223_372_036_854

/**
 * Milliseconds of a Go duration, rounded up to a whole one so that no positive duration becomes "none". Undefined when
 * the text is not one (specification, `tokenLifespans`) or overflows Go's.
 */
export function parseGoDuration(text: string): Milliseconds | undefined {
  if (text.length > 64 || !GO_DURATION.test(text)) return undefined
  let total = 0
  for (const [, amount, name] of text.matchAll(/([0-9]+(?:\.[0-9]+)?)(ns|us|µs|ms|s|m|h)/g)) {
    total += Number(amount) * (MILLISECONDS_PER[name ?? ''] ?? Number.NaN)
  }
  // Ten decimals of a millisecond are below a nanosecond: what is cut is floating-point dust, not time.
  const whole = Math.ceil(Number(total.toFixed(7)))
  return Number.isFinite(total) && total <= LONGEST_GO_DURATION_MS ? milliseconds(whole) : undefined
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
