import { setTimeout as delay } from 'node:timers/promises'

/** Fault of a demo service: none, late responses, overload, malformed responses, or revoked credentials. */
export const FAULT_MODES = ['none', 'slow', 'throttled', 'broken', 'revoking'] as const
export type FaultMode = (typeof FAULT_MODES)[number]

/** Services with faults on demand. */
export const FAULT_TARGETS = ['exchange', 'clientCredentials', 'introspection', 'sts'] as const
export type FaultTarget = (typeof FAULT_TARGETS)[number]

export interface FaultSettings {
  exchange: FaultMode
  /** Of tokens that clients get for themselves. */
  clientCredentials: Exclude<FaultMode, 'revoking'>
  introspection: FaultMode
  sts: FaultMode
  /** How late a slow answer comes, in milliseconds. Default 30 s, beyond every deadline of the proxy. */
  slowMs: number
  /** Retry-After of a throttled answer, in seconds. Default 2. */
  retryAfterSeconds: number
}

/** The faults of the lab, shared by its demo services and set through `/lab/faults`. */
export interface LabFaults {
  readonly settings: Readonly<FaultSettings>
  /** Sets what is given and leaves the rest; `revoking` takes effect at once, and what is issued after it is good again. */
  set(change: Partial<FaultSettings>): void
  /** Registers what `revoking` takes back for a target. */
  onRevoking(target: FaultTarget, revoke: () => void): void
  /** Waits if the target is slow; ends early when `signal` says that the caller has gone. */
  pause(target: FaultTarget, signal?: AbortSignal): Promise<void>
}

/** A switchboard on which everything behaves. */
export function createLabFaults(): LabFaults {
  const settings: FaultSettings = {
    exchange: 'none',
    clientCredentials: 'none',
    introspection: 'none',
    sts: 'none',
    slowMs: 30_000,
    retryAfterSeconds: 2,
  }
  const revokers = new Map<FaultTarget, () => void>()
  return {
    settings,
    set(change) {
      Object.assign(settings, change)
      for (const target of FAULT_TARGETS) if (change[target] === 'revoking') revokers.get(target)?.()
    },
    onRevoking: (target, revoke) => void revokers.set(target, revoke),
    async pause(target, signal) {
      if (settings[target] !== 'slow') return
      await delay(settings.slowMs, undefined, { ref: false, ...(signal === undefined ? {} : { signal }) }).catch(
        () => undefined,
      )
    },
  }
}
