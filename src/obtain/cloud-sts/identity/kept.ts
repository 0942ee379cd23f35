import { asFailure, Failure, isDuring, type Clock, type Log, type Pause } from '../../../core/index.ts'
import { pauseMs } from '../../../cache/index.ts'
import { createRejections } from '../../rejections.ts'
import type { HopMetrics } from './hop-metrics.ts'
import type { AwsIdentity, AwsKeys } from './keys.ts'

/** Keys are renewed this long before expiry, or at half of a shorter lifetime. */
const AHEAD_MS = 5 * 60_000
/** Default pause after a failure. */
const USUAL_PAUSE_MS = 1_000
/** Probes continue this long after the last failed request. */
const PROBED_MS = 60_000
/** Log interval of an unchanged failure. */
const LOGGED_MS = 30_000

export interface KeptDeps {
  readonly clock: Clock
  readonly log: Log
  /** The identity's name for the log. */
  readonly name: string
  readonly metrics: HopMetrics
}

/** An identity that probes for keys after a failure, until closed. */
export interface KeptIdentity extends AwsIdentity {
  close(): void
}

/**
 * Keeps the keys that `fetch` returns: renewed before they expire, one fetch for all who wait, none during the pause after
 * a failure. After a failure that requests have met, probes renew them in the background: an outage that ends is noticed
 * within 2 s. While no new keys come the last ones are used until they expire; then `current` throws the failure.
 */
export function createKeptIdentity(
  fetch: () => Promise<AwsKeys>,
  { clock, log, name, metrics }: KeptDeps,
): KeptIdentity {
  let keys: AwsKeys | undefined
  let obtainedAtMs = -Infinity
  let refreshAtMs = Infinity
  let flight: Promise<AwsKeys> | undefined
  let failure: Failure | undefined
  let failuresInARow = 0
  let pause: Pause | undefined
  let logged: (Pause & { readonly detail: string | undefined }) | undefined
  /** Until when requests count as waiting for keys. */
  let wanted: Pause | undefined
  let probe: NodeJS.Timeout | undefined
  let isClosed = false
  const rejections = createRejections(clock)

  const take = (fetched: AwsKeys): AwsKeys => {
    const nowMs = clock.now()
    if (!(fetched.expiresAtMs > nowMs))
      throw new Failure('aws_identity_unavailable', { detail: `${name}: its credentials have already expired` })
    keys = fetched
    obtainedAtMs = nowMs
    metrics.show(fetched, nowMs)
    // Keys without expiry may be replaced in their file.
    refreshAtMs = Number.isFinite(fetched.expiresAtMs)
      ? fetched.expiresAtMs - Math.min(AHEAD_MS, (fetched.expiresAtMs - nowMs) / 2)
      : nowMs + AHEAD_MS
    if (failure !== undefined) log.info({ identity: name }, 'AWS credentials obtained again')
    failure = undefined
    failuresInARow = 0
    pause = undefined
    logged = undefined
    wanted = undefined
    clearTimeout(probe)
    return fetched
  }
  const fail = (error: unknown): never => {
    failure = asFailure(error)
    const sinceMs = clock.now()
    const forMs = pauseMs(failure, ++failuresInARow) ?? USUAL_PAUSE_MS
    pause = { sinceMs, untilMs: sinceMs + forMs }
    if (!isDuring(logged, sinceMs) || logged.detail !== failure.detail) {
      logged = { sinceMs, untilMs: sinceMs + LOGGED_MS, detail: failure.detail }
      log.warn({ identity: name, reason: failure.code, detail: failure.detail }, 'renewing AWS credentials failed')
    }
    clearTimeout(probe)
    if (!isClosed && isDuring(wanted, sinceMs)) probe = setTimeout(renewSilently, forMs).unref()
    throw again(failure, forMs)
  }
  const renew = (): Promise<AwsKeys> => {
    flight ??= metrics
      .counted(fetch().then(take))
      .catch(fail)
      .finally(() => (flight = undefined))
    return flight
  }
  /** Failures are logged. */
  const renewSilently = (): void => void renew().catch(() => undefined)

  return {
    current() {
      const nowMs = clock.now()
      if (keys !== undefined && nowMs < keys.expiresAtMs) {
        if (nowMs >= refreshAtMs && !isDuring(pause, nowMs) && flight === undefined) renewSilently()
        return keys
      }
      wanted = { sinceMs: nowMs, untilMs: nowMs + PROBED_MS }
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
    close() {
      isClosed = true
      clearTimeout(probe)
    },
  }
}

/** A cached failure with the time until the next fetch, so that dependents pause no longer than that. */
const again = ({ code, detail, cause }: Failure, inMs: number): Failure =>
  new Failure(code, {
    ...(detail === undefined ? {} : { detail }),
    cause,
    retryAfterSeconds: Math.ceil(inMs / 1000),
    refusedForMs: inMs,
  })
