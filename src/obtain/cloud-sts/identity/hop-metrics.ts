import { asFailure, type EpochMs, type Metrics } from '../../../core/index.ts'
import type { AwsKeys } from './keys.ts'

/** The identity of the process, the role of a first hop, the role of a caller. */
export type HopKind = 'process' | 'hub' | 'role'

export interface HopMetrics {
  /** Counts the outcome of a call. */
  counted<T>(call: Promise<T>): Promise<T>
  /** Reports the validity period of these keys. */
  show(keys: AwsKeys, obtainedAtMs: EpochMs): void
}

/** Metrics of AWS credential hops; ages are those of the oldest, across workers. */
export function createHopMetrics(metrics: Metrics, hop: HopKind): HopMetrics {
  const hops = metrics.counter(
    'extauth_aws_hops_total',
    'Calls for AWS credentials: the identity of the process, the role of a first hop (hub), roles of callers; ok or the reason.',
    ['hop', 'outcome'],
  )
  const obtained = metrics.gauge(
    'extauth_aws_identity_obtained_seconds',
    'When the oldest process identity in use was obtained, in seconds since the epoch.',
    ['hop'],
    'min',
  )
  const ends = metrics.gauge(
    'extauth_aws_identity_ends_seconds',
    'Earliest expiry of a process identity in use, in seconds since the epoch; absent for keys without expiry.',
    ['hop'],
    'min',
  )
  return {
    async counted(call) {
      try {
        const result = await call
        hops.with(hop, 'ok').add()
        return result
      } catch (error) {
        hops.with(hop, asFailure(error).code).add()
        throw error
      }
    },
    show({ expiresAtMs }, obtainedAtMs) {
      obtained.with(hop).set(obtainedAtMs / 1000)
      if (Number.isFinite(expiresAtMs)) ends.with(hop).set(expiresAtMs / 1000)
    },
  }
}
