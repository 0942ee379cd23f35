/** The limit that stopped an operation, and the setting that changes it. */
export interface ReachedLimit {
  readonly amount: number
  readonly unit: 'ms' | 'bytes' | 'at once'
  /** The setting and its owner: `timeouts.firstByte` of `the route`. Undefined when the limit is fixed. */
  readonly setting?: { readonly name: string; readonly of: string } | undefined
}

const SIZES = [
  [1024 * 1024, 'MiB'],
  [1024, 'KiB'],
] as const

/** The amount, formatted: `60 s`, `10 MiB`. */
export function amountOf({ amount, unit }: ReachedLimit): string {
  if (unit === 'at once') return `${amount} at once`
  if (unit === 'ms') return amount < 1000 ? `${Math.round(amount)} ms` : `${Math.round(amount / 100) / 10} s`
  const size = SIZES.find(([bytes]) => amount >= bytes && amount % bytes === 0)
  return size === undefined ? `${amount} bytes` : `${amount / size[0]} ${size[1]}`
}

/** Cause and remedy, extended by the limit that was reached. */
export function withLimit<T extends { readonly cause: string; readonly remedy: string }>(
  base: T,
  limit: ReachedLimit | undefined,
): T {
  if (limit === undefined) return base
  const { setting } = limit
  const where = setting === undefined ? 'fixed' : `${setting.name} of ${setting.of}`
  const cause = `${base.cause}; the limit is ${amountOf(limit)} (${where})`
  if (setting === undefined || base.remedy.includes(setting.name)) return { ...base, cause }
  return { ...base, cause, remedy: `${base.remedy} Raise ${setting.name} of ${setting.of} if that is expected.` }
}

/** The limit carried by an error or one of its causes. */
export function limitIn(error: unknown): ReachedLimit | undefined {
  if (typeof error !== 'object' || error === null) return undefined
  const { limit, cause } = error as { limit?: ReachedLimit; cause?: unknown }
  return isLimit(limit) ? limit : limitIn(cause)
}

const isLimit = (value: unknown): value is ReachedLimit =>
  typeof value === 'object' && value !== null && 'amount' in value && 'unit' in value
