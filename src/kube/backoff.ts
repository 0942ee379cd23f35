export interface BackoffOptions {
  /** First pause in milliseconds. */
  readonly firstMs: number
  /** Maximum pause in milliseconds. */
  readonly mostMs: number
  /** 0 ≤ n < 1. */
  readonly random: () => number
}

/**
 * Milliseconds to wait after `failures` consecutive failures (1, 2, …): doubles each time, with jitter from half to
 * the whole.
 */
export function backoffMs(failures: number, { firstMs, mostMs, random }: BackoffOptions): number {
  const whole = Math.min(mostMs, firstMs * 2 ** Math.min(Math.max(failures, 1) - 1, 30))
  return whole / 2 + (random() * whole) / 2
}
