import { asFailure, type Metrics } from '../../../core/index.ts'
import type { AwsKeys } from './keys.ts'

/** The identity of the process, the role of a first hop, the role of a caller. */
export type HopKind = 'process' | 'hub' | 'role'

export interface HopMetrics {
  /** Counts how a call ended. */
  counted<T>(call: Promise<T>): Promise<T>
  /** Since when and until when these are good. */
  show(keys: AwsKeys, obtainedAtMs: number): void
}

/** What is told of the way to AWS credentials; ages are those of the oldest, over all workers. */
export function createHopMetrics(metrics: Metrics, hop: HopKind): HopMetrics {
  const hops = metrics.counter(
    'extauth_aws_hops_total',
    'Calls for AWS credentials: the identity of the process, the role of a first hop (hub), roles of callers; ok or the reason.',
    ['hop', 'outcome'],
  )
  const obtained = metrics.gauge(
    'extauth_aws_identity_obtained_seconds',
    'When the oldest identity of the process that is in use was obtained, in seconds since the epoch.',
    ['hop'],
    'min',
  )
  const ends = metrics.gauge(
    'extauth_aws_identity_ends_seconds',
    'When the first of them ends, in seconds since the epoch; not there for keys without an end.',
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
