/** The time or amount that was all there was: how much, and where that is changed. */
export interface ReachedLimit {
  readonly amount: number
  readonly unit: 'ms' | 'bytes' | 'at once'
  /** The setting, and what has it: `timeouts.firstByte` of `the route`. Undefined where it is fixed. */
  readonly setting?: { readonly name: string; readonly of: string } | undefined
}

const SIZES = [
  [1024 * 1024, 'MiB'],
  [1024, 'KiB'],
] as const

/** How much it was, for people: `60 s`, `10 MiB`. */
export function amountOf({ amount, unit }: ReachedLimit): string {
  if (unit === 'at once') return `${amount} at once`
  if (unit === 'ms') return amount < 1000 ? `${Math.round(amount)} ms` : `${Math.round(amount / 100) / 10} s`
  const size = SIZES.find(([bytes]) => amount >= bytes && amount % bytes === 0)
  return size === undefined ? `${amount} bytes` : `${amount / size[0]} ${size[1]}`
}

/** What happened and what to do, with the limit that was reached. */
export function withLimit<T extends { readonly cause: string; readonly remedy: string }>(
  told: T,
  limit: ReachedLimit | undefined,
): T {
  if (limit === undefined) return told
  const { setting } = limit
  const where = setting === undefined ? 'fixed' : `${setting.name} of ${setting.of}`
  const cause = `${told.cause}; the limit is ${amountOf(limit)} (${where})`
  if (setting === undefined || told.remedy.includes(setting.name)) return { ...told, cause }
  return { ...told, cause, remedy: `${told.remedy} Raise ${setting.name} of ${setting.of} where that much is meant.` }
}

/** The limit that an error names, or one beneath it. */
export function limitIn(error: unknown): ReachedLimit | undefined {
  if (typeof error !== 'object' || error === null) return undefined
  const { limit, cause } = error as { limit?: ReachedLimit; cause?: unknown }
  return isLimit(limit) ? limit : limitIn(cause)
}

const isLimit = (value: unknown): value is ReachedLimit =>
  typeof value === 'object' && value !== null && 'amount' in value && 'unit' in value
