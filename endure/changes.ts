import type { FaultLog } from './oracle/excuses.ts'
import type { Findings } from './oracle/findings.ts'
import { STALL } from './stalls.ts'
import type { World } from './world/world.ts'

/** Configuration changes by an operator during a run. */
export interface Changes {
  /** How often each was done. */
  readonly done: Readonly<Record<'reloads' | 'secrets' | 'keys' | 'providerKeys', number>>
}

interface Surroundings {
  readonly world: World
  readonly findings: Findings
  readonly faults: FaultLog
  readonly runMs: number
  readonly pause: (ms: number) => Promise<void>
  readonly isOver: () => boolean
}

const MINUTE_MS = 60_000
/** Files are looked at again every five seconds at the latest; a replica may stand still for eight. */
const TAKEN_OVER_MS = 30_000
/** Within a minute, when the next follows; longer for processes that the machine gives no time. */
const SECRETS_GRACE_MS = 50_000
/** Callers' tokens have expired by then. The proxy's own have not, and are fetched again when the backend rejects them. */
const PROVIDER_KEYS_EVERY_MS = 11 * MINUTE_MS
const POLL_MS = 500
const STALLED_MS = 2_000

/** Each minute another set of routes and new values of the fixed secrets, now and then new keys; ends with the run. */
export async function change(around: Surroundings): Promise<Changes> {
  const { world, runMs, pause, isOver } = around
  const done = { reloads: 0, secrets: 0, keys: 0, providerKeys: 0 }
  const everyMs = Math.min(MINUTE_MS, runMs / 3)
  let rotatedAt = 0
  const startedAt = performance.now()
  const watching: Promise<void>[] = []
  for (let minute = 1; ; minute += 1) {
    await pause(everyMs / 2)
    // Near the end its effect could not be observed.
    if (isOver() || performance.now() - startedAt > runMs - (2 * TAKEN_OVER_MS) / 3) break
    watching.push(untilTakenOver(await world.configuration.reload(), around))
    done.reloads += 1
    await pause(everyMs / 2)
    if (isOver()) break
    await world.configuration.rotateStatic(SECRETS_GRACE_MS)
    done.secrets += 1
    if (minute % 3 === 1) {
      await world.configuration.rotateKeys()
      done.keys += 1
    }
    const sinceMs = performance.now() - rotatedAt
    if (rotatedAt === 0 || sinceMs > PROVIDER_KEYS_EVERY_MS) {
      rotatedAt = performance.now()
      await world.services.identity.rotate()
      done.providerKeys += 1
    }
  }
  await Promise.all(watching)
  return { done }
}

/** Waits until each replica that runs says that it serves this set of routes. */
async function untilTakenOver(
  generation: number,
  { world, findings, faults, pause, isOver }: Surroundings,
): Promise<void> {
  let left = TAKEN_OVER_MS
  const waiting = new Map(world.replicas.map((replica) => [replica.name, replica]))
  while (waiting.size > 0 && !isOver()) {
    await pause(POLL_MS)
    for (const [name, { adminUrl }] of waiting) {
      const text = await fetch(`${adminUrl}/config`, { signal: AbortSignal.timeout(2_000) }).then(
        (response) => response.text(),
        () => '',
      )
      const served = [...text.matchAll(/generation-(\d+)/g)].map(([, number]) => Number(number))
      if (served.some((number) => number >= generation)) waiting.delete(name)
    }
    // A process that is down, stopped or without CPU time cannot reload.
    const now = performance.now()
    const isOn = faults.spans.some(({ name, parts, until }) =>
      name === STALL
        ? (until ?? now) > now - STALLED_MS
        : until === undefined && parts.some((part) => part === 'replica' || part === 'drain'),
    )
    if (!isOn) left -= POLL_MS
    if (left > 0) continue
    for (const name of waiting.keys()) findings.add('reload not seen', `routes ${generation} at ${name}`)
    return
  }
}
