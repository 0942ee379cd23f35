import { randomBytes } from 'node:crypto'
import type { Store } from '../port.ts'
import type { RedisRuntime } from './config.ts'

const MARK = 'mark'
/** Rewritten at half of this time. */
const MARK_TTL_MS = 30 * 24 * 3_600_000
const LOOK_MS = 5_000
/** Time for which readiness reports a loss. */
const REPORT_MS = 3_600_000

/** Detects whether a store has lost its data during this process. */
export interface LossWatch {
  /** As text; undefined without a loss in the last hour. */
  readonly remark: string | undefined
  close(): void
}

/**
 * Writes a mark to the store and checks it every 5 s. If it is missing or different, the store restarted empty, was
 * flushed, or evicted it, and logins and codes may be lost: this is logged and counted.
 */
export function createLossWatch(store: Store, scope: string, { clock, log, metrics }: RedisRuntime): LossWatch {
  const losses = metrics.counter('extauth_store_losses_total', 'Detected losses of data in the store.').with()
  let known: string | undefined
  let lostAt: number | undefined

  const learn = (mark: string) => {
    if (known !== undefined && known !== mark) {
      lostAt = clock.now()
      losses.add()
      const { endpoint } = store.health()
      log.warn({ scope, ...endpoint }, 'store lost its data: it restarted empty, was flushed, or evicts')
    }
    known = mark
  }
  const look = async () => {
    const found = await store.get(MARK)
    if (found === undefined) {
      const made = randomBytes(9).toString('base64url')
      if (await store.putIfAbsent(MARK, Buffer.from(made), MARK_TTL_MS)) learn(made)
      return
    }
    learn(found.value.toString('latin1'))
    if (found.leftMs < MARK_TTL_MS / 2) await store.compareAndSet(MARK, found.version, found.value, MARK_TTL_MS)
  }
  // Errors of the store are reported elsewhere.
  const lookAgain = () => void look().catch(() => undefined)
  const looking = setInterval(lookAgain, LOOK_MS)
  looking.unref()
  lookAgain()

  return {
    get remark() {
      if (lostAt === undefined || clock.now() - lostAt > REPORT_MS) return undefined
      return `it has lost its data, detected at ${new Date(lostAt).toISOString()}: users log in again`
    },
    close: () => clearInterval(looking),
  }
}
