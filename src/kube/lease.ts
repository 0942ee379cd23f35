import { causeOf, type Log } from '../core/index.ts'
import type { KubeClient } from './client.ts'
import { isNotFound, KubeError } from './kube-error.ts'
import type { KubeObject, ResourceType } from './object.ts'
import { pause, systemTimers, type Timers } from './timers.ts'

export interface LeaseOptions {
  readonly client: KubeClient
  readonly namespace: string
  readonly name: string
  /** Identity of this holder; differs between replicas and starts. */
  readonly identity: string
  /** Lifetime of a lease without renewal in milliseconds. Default 15,000. */
  readonly durationMs?: number
  /** Milliseconds after which a holder that cannot renew gives up. Default 10,000. */
  readonly renewDeadlineMs?: number
  /** Retry interval in milliseconds. Default 2,000. */
  readonly retryMs?: number
  readonly onAcquired: () => void
  /** A different holder may act now: writes must stop. */
  readonly onLost: () => void
  readonly log: Log
  readonly timers?: Timers
}

export interface LeaderElection {
  /** True while this process holds the lease and its renew deadline has not passed. */
  readonly isLeader: boolean
  /** Releases the lease for the next holder; resolves after the attempt to write it. */
  release(): Promise<void>
}

export const LEASES: ResourceType = {
  group: 'coordination.k8s.io',
  version: 'v1',
  plural: 'leases',
  kind: 'Lease',
  isNamespaced: true,
}

interface LeaseSpec {
  readonly holderIdentity?: string
  readonly leaseDurationSeconds?: number
  readonly renewTime?: string
  readonly acquireTime?: string
  readonly leaseTransitions?: number
}

const DEFAULT_DURATION_MS = 15_000
const DEFAULT_RENEW_DEADLINE_MS = 10_000
const DEFAULT_RETRY_MS = 2_000
/** Share of the renew deadline for one request: a silent connection must not cost the lease. */
const REQUEST_SHARE = 0.4

/**
 * Leader election with a `Lease`. Renewals of others are timed by the local clock when they change, never by the
 * written time, so that clocks need not agree.
 */
export function electLeader(options: LeaseOptions): LeaderElection {
  const { client, namespace, name, identity, log, timers = systemTimers } = options
  const durationMs = options.durationMs ?? DEFAULT_DURATION_MS
  const renewDeadlineMs = options.renewDeadlineMs ?? DEFAULT_RENEW_DEADLINE_MS
  const retryMs = options.retryMs ?? DEFAULT_RETRY_MS
  const call = { deadlineMs: renewDeadlineMs * REQUEST_SHARE }
  const stop = new AbortController()
  let heldUntilMs = 0
  let wasLeader = false
  /** The stored lease may be this process's. */
  let isHeld = false
  let cancelDeadline = (): void => {}
  let seen = { version: '', atMs: 0 }

  const micro = (): string => new Date(timers.now()).toISOString().replace('Z', '000Z')

  const lose = (why: string): void => {
    if (!wasLeader) return
    wasLeader = false
    isHeld = false
    heldUntilMs = 0
    cancelDeadline()
    // A lost lease must not be acquired again by a request in flight.
    stop.abort()
    log.error({ lease: `${namespace}/${name}`, why }, 'leadership lost')
    options.onLost()
  }

  const hold = (sentAtMs: number): void => {
    isHeld = true
    // Released or lost while the response was on its way.
    if (stop.signal.aborted) return
    // Counted from sending the request, so that no other holder acquires it meanwhile.
    heldUntilMs = sentAtMs + renewDeadlineMs
    cancelDeadline()
    cancelDeadline = timers.after(heldUntilMs - timers.now(), () => lose('not renewed in time'))
    if (wasLeader) return
    wasLeader = true
    log.info({ lease: `${namespace}/${name}` }, 'leadership acquired')
    options.onAcquired()
  }

  const attempt = async (): Promise<void> => {
    const sentAtMs = timers.now()
    let stored: KubeObject
    try {
      stored = await client.get(LEASES, namespace, name, call)
    } catch (error) {
      if (!isNotFound(error)) throw error
      if (stop.signal.aborted) return
      await client.create(LEASES, leaseObject({ leaseTransitions: 0, acquireTime: micro() }), call)
      return hold(sentAtMs)
    }
    const spec = (stored['spec'] ?? {}) as LeaseSpec
    const isOurs = spec.holderIdentity === identity
    const version = stored.metadata.resourceVersion ?? ''
    if (version !== seen.version) seen = { version, atMs: timers.now() }
    const isFree =
      spec.holderIdentity === undefined ||
      spec.holderIdentity === '' ||
      timers.now() >= seen.atMs + Math.max(durationMs, (spec.leaseDurationSeconds ?? 0) * 1000)
    if (!isOurs && !isFree) return lose('a different holder has the lease')
    const transitions = (spec.leaseTransitions ?? 0) + (isOurs ? 0 : 1)
    const acquireTime = isOurs ? (spec.acquireTime ?? micro()) : micro()
    if (stop.signal.aborted) return
    const lease = leaseObject({ leaseTransitions: transitions, acquireTime }, version)
    const written = await client.update(LEASES, lease, call)
    seen = { version: written.metadata.resourceVersion ?? '', atMs: timers.now() }
    hold(sentAtMs)
  }

  const leaseObject = (more: LeaseSpec, resourceVersion?: string): KubeObject => ({
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, namespace, ...(resourceVersion === undefined ? {} : { resourceVersion }) },
    spec: {
      holderIdentity: identity,
      leaseDurationSeconds: Math.round(durationMs / 1000),
      renewTime: micro(),
      ...more,
    },
  })

  const run = async (): Promise<void> => {
    let failures = 0
    while (!stop.signal.aborted) {
      const startedMs = timers.now()
      try {
        await attempt()
        failures = 0
      } catch (error) {
        // A conflict means that another process was faster; other errors are retried until the deadline.
        const status = error instanceof KubeError ? error.status : undefined
        const level = status !== 409 && failures++ === 0 ? 'warn' : 'debug'
        log[level]({ lease: `${namespace}/${name}`, status, cause: causeOf(error) }, 'lease not written')
      }
      // Attempts start at this interval; one without a response is repeated at once.
      await pause(timers, Math.max(0, retryMs - (timers.now() - startedMs)), stop.signal)
    }
  }
  const running = run()

  return {
    get isLeader() {
      return wasLeader && timers.now() < heldUntilMs
    },
    async release() {
      stop.abort()
      cancelDeadline()
      await running
      if (!isHeld) return
      wasLeader = false
      try {
        const stored = await client.get(LEASES, namespace, name, call)
        const spec = (stored['spec'] ?? {}) as LeaseSpec
        if (spec.holderIdentity !== identity) return
        const free = { ...spec, holderIdentity: '', leaseDurationSeconds: 1 }
        await client.update(LEASES, { ...stored, spec: free }, call)
      } catch (error) {
        log.warn({ cause: causeOf(error) }, 'lease not released, it will expire')
      }
    },
  }
}
