import { asFailure, Failure, isDuring, type Clock, type Log, type Pause } from '../../../core/index.ts'
import type { HopMetrics } from './hop-metrics.ts'
import { createRejections } from '../../rejections.ts'
import type { AwsIdentity, AwsKeys } from './keys.ts'

/** Keys are renewed this long before their end, or at half of a shorter life. */
const AHEAD_MS = 5 * 60_000
/** Nobody asks again so soon after a failure; doubled with each that follows, up to the longest. */
const FIRST_PAUSE_MS = 1_000
const LONGEST_PAUSE_MS = 30_000

export interface KeptDeps {
  readonly clock: Clock
  readonly log: Log
  /** What the identity is, for the log. */
  readonly name: string
  readonly metrics: HopMetrics
}

/**
 * Keeps the keys that `fetch` gives: asked ahead of their end, once for all who wait, and never again while a failure is
 * fresh. While nothing new is to be had the last ones are good until their end; after it `current` throws the failure.
 */
export function createKeptIdentity(
  fetch: () => Promise<AwsKeys>,
  { clock, log, name, metrics }: KeptDeps,
): AwsIdentity {
  let keys: AwsKeys | undefined
  let obtainedAtMs = -Infinity
  let refreshAtMs = Infinity
  let flight: Promise<AwsKeys> | undefined
  let failure: Failure | undefined
  let pause: Pause | undefined
  let pauseMs = FIRST_PAUSE_MS
  const rejections = createRejections(clock)

  const take = (fetched: AwsKeys): AwsKeys => {
    const nowMs = clock.now()
    if (!(fetched.expiresAtMs > nowMs))
      throw new Failure('aws_identity_unavailable', { detail: `${name} gave credentials that are over already` })
    keys = fetched
    obtainedAtMs = nowMs
    metrics.show(fetched, nowMs)
    // What has no end may be other keys by then: files are written anew.
    refreshAtMs = Number.isFinite(fetched.expiresAtMs)
      ? fetched.expiresAtMs - Math.min(AHEAD_MS, (fetched.expiresAtMs - nowMs) / 2)
      : nowMs + AHEAD_MS
    failure = undefined
    pause = undefined
    pauseMs = FIRST_PAUSE_MS
    return fetched
  }
  const fail = (error: unknown): never => {
    failure = asFailure(error)
    const sinceMs = clock.now()
    pause = { sinceMs, untilMs: sinceMs + pauseMs }
    pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)
    log.warn({ identity: name, reason: failure.code, detail: failure.detail }, 'no new AWS credentials')
    throw failure
  }
  const renew = (): Promise<AwsKeys> => {
    flight ??= metrics
      .counted(fetch().then(take))
      .catch(fail)
      .finally(() => (flight = undefined))
    return flight
  }

  return {
    current() {
      const nowMs = clock.now()
      if (keys !== undefined && nowMs < keys.expiresAtMs) {
        // A failure is logged, and these are still good.
        if (nowMs >= refreshAtMs && !isDuring(pause, nowMs) && flight === undefined) renew().catch(() => undefined)
        return keys
      }
      if (flight === undefined && failure !== undefined && isDuring(pause, nowMs))
        throw again(failure, pause.untilMs - nowMs)
      return renew()
    },
    async reject(refused, caller) {
      if (keys !== undefined && keys.accessKeyId !== refused.accessKeyId) return true
      const mayRenew = rejections.mayRenew(obtainedAtMs, caller) && !isDuring(pause, clock.now())
      const isFirst = flight === undefined
      if (isFirst && !mayRenew) return false
      const renewed = await renew().catch(() => undefined)
      if (renewed === undefined || renewed.accessKeyId === refused.accessKeyId) return false
      if (isFirst) rejections.renewed()
      return true
    },
  }
}

/** A failure that is remembered, with the time until somebody looks again. */
const again = ({ code, detail }: Failure, inMs: number): Failure =>
  new Failure(code, { ...(detail === undefined ? {} : { detail }), retryAfterSeconds: Math.ceil(inMs / 1000) })
