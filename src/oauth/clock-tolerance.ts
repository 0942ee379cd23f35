/** How far the clock of an issuer and the proxy's may differ, in seconds (decisions §2.3). */
export interface ClockTolerance {
  /** After `exp`. */
  readonly expiredSeconds: number
  /** Before `nbf` and `iat`. */
  readonly earlySeconds: number
}

/**
 * `toleranceSeconds` of a configuration sets both. By default a token may come 30 s early, which ordinary drift needs, and
 * 5 s late, because the MCP specification accepts no expired tokens.
 */
export const clockTolerance = (seconds: number | undefined): ClockTolerance => ({
  expiredSeconds: seconds ?? 5,
  earlySeconds: seconds ?? 30,
})
