import { causeOf, type Log } from '../core/index.ts'
import type { KubeClient } from './client.ts'
import { isNotFound, KubeError } from './kube-error.ts'
import type { KubeObject, ResourceType } from './object.ts'
import { pause, systemTimers, type Timers } from './timers.ts'

export interface LeaseOptions {
  readonly client: KubeClient
  readonly namespace: string
  readonly name: string
  /** Who we are; must differ between replicas and between starts. */
  readonly identity: string
  /** Milliseconds that a lease lives without renewal. Default 15,000. */
  readonly durationMs?: number
  /** Milliseconds after which a holder that could not renew gives up. Default 10,000. */
  readonly renewDeadlineMs?: number
  /** Milliseconds between tries. Default 2,000. */
  readonly retryMs?: number
  readonly onAcquired: () => void
  /** Somebody else may act now: nothing may be written any more. */
  readonly onLost: () => void
  readonly log: Log
  readonly timers?: Timers
}

export interface LeaderElection {
  /** True while we hold it and its renew deadline has not passed. */
  readonly isLeader: boolean
  /** Lets go so that another one can go on at once; resolves when that was written or could not be. */
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
/** Part of the renew deadline that one request may take: a connection that is silent must not cost the lease. */
const REQUEST_SHARE = 0.4

/**
 * Leader election by a `Lease`. Another one's renewals are timed by our own clock from when we saw them change, never by
 * the time written in them, so that clocks of two machines need not agree.
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
  /** The lease that is stored may be ours. */
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
    // Lost is lost: what is under way must not take it again.
    stop.abort()
    log.error({ lease: `${namespace}/${name}`, why }, 'leadership lost')
    options.onLost()
  }

  const hold = (sentAtMs: number): void => {
    isHeld = true
    // Asked to let go, or lost, while the answer was on the way.
    if (stop.signal.aborted) return
    // From when the request was sent: nobody may take over while its answer was on the way.
    heldUntilMs = sentAtMs + renewDeadlineMs
    cancelDeadline()
    cancelDeadline = timers.after(heldUntilMs - timers.now(), () => lose('could not be renewed in time'))
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
    if (!isOurs && !isFree) return lose('another one holds the lease')
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
        // A conflict means that another one was faster; anything else is tried again until the deadline has passed.
        const status = error instanceof KubeError ? error.status : undefined
        const level = status !== 409 && failures++ === 0 ? 'warn' : 'debug'
        log[level]({ lease: `${namespace}/${name}`, status, cause: causeOf(error) }, 'lease not written')
      }
      // Tries begin so far apart; one that got no answer at all is followed by the next at once.
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
        log.warn({ cause: causeOf(error) }, 'the lease could not be released; it ends by itself')
      }
    },
  }
}
