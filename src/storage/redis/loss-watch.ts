import { randomBytes } from 'node:crypto'
import type { Store } from '../port.ts'
import type { RedisRuntime } from './config.ts'

const MARK = 'mark'
/** Written again when half of it is over. */
const MARK_TTL_MS = 30 * 24 * 3_600_000
const LOOK_MS = 5_000
/** So long a loss is told in readiness: users log in again meanwhile. */
const TELL_MS = 3_600_000

/** Knows whether a store has lost what was in it while this process ran. */
export interface LossWatch {
  /** For people; undefined when nothing was lost, or when that was more than an hour ago. */
  readonly remark: string | undefined
  close(): void
}

/**
 * Keeps a mark among the keys of `store` and looks at it every 5 s. When it is gone, or is another one, the store restarted
 * empty, was flushed, or evicted it, and logins and codes may be gone with it: that is said in the log and counted.
 */
export function createLossWatch(store: Store, scope: string, { clock, log, metrics }: RedisRuntime): LossWatch {
  const losses = metrics
    .counter('extauth_store_losses_total', 'Times that the store was found to have lost what was in it.')
    .with()
  let known: string | undefined
  let lostAt: number | undefined

  const learn = (mark: string) => {
    if (known !== undefined && known !== mark) {
      lostAt = clock.now()
      losses.add()
      const { endpoint } = store.health()
      log.warn({ scope, ...endpoint }, 'the store has lost what was in it: it restarted empty, was flushed, or evicts')
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
  // What is wrong with a store that does not answer is said elsewhere.
  const lookAgain = () => void look().catch(() => undefined)
  const looking = setInterval(lookAgain, LOOK_MS)
  looking.unref()
  lookAgain()

  return {
    get remark() {
      if (lostAt === undefined || clock.now() - lostAt > TELL_MS) return undefined
      return `it has lost what was in it, as seen at ${new Date(lostAt).toISOString()}: users log in again`
    },
    close: () => clearInterval(looking),
  }
}
