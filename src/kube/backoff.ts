export interface BackoffOptions {
  /** Milliseconds of the first pause. */
  readonly firstMs: number
  /** Milliseconds that no pause is longer than. */
  readonly mostMs: number
  /** 0 ≤ n < 1. */
  readonly random: () => number
}

/** Milliseconds to wait after the `failures`th failure in a row (1, 2, …): doubled each time, from half to the whole of it. */
export function backoffMs(failures: number, { firstMs, mostMs, random }: BackoffOptions): number {
  const whole = Math.min(mostMs, firstMs * 2 ** Math.min(Math.max(failures, 1) - 1, 30))
  return whole / 2 + (random() * whole) / 2
}
