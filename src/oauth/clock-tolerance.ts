/** Tolerated clock skew between issuer and proxy, in seconds (decisions §2.3). */
export interface ClockTolerance {
  /** After `exp`. */
  readonly expiredSeconds: number
  /** Before `nbf` and `iat`. */
  readonly earlySeconds: number
}

/**
 * `toleranceSeconds` sets both. By default a token may be used 30 s early, to allow for drift, and 5 s late, because
 * the MCP specification accepts no expired tokens.
 */
export const clockTolerance = (seconds: number | undefined): ClockTolerance => ({
  expiredSeconds: seconds ?? 5,
  earlySeconds: seconds ?? 30,
})
