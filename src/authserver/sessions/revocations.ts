import { asFailure, type Log } from '../../core/index.ts'
import type { Upstream } from '../../upstreams/index.ts'
import type { HeldTokens, SessionRecord } from './record.ts'

/** Tells upstreams of sessions that were ended here. */
export interface Revocations {
  /** Begins to tell all upstreams of a session, and waits for nothing; what fails is a line of the log. */
  begin(record: SessionRecord): void
  /** Waits for what is under way; each has its deadline. */
  settle(): Promise<void>
}

/** More at a time are left out: the upstream's tokens end by themselves. */
const MOST_AT_ONCE = 1000

/** Best effort (RFC 7009): a session is over here whatever an upstream makes of it. */
export function createRevocations(upstreams: ReadonlyMap<string, Upstream>, log: Log): Revocations {
  const running = new Set<Promise<void>>()

  const tell = async (name: string, held: HeldTokens): Promise<void> => {
    try {
      await upstreams.get(name)?.revoke?.(held)
    } catch (error) {
      const { code, detail } = asFailure(error)
      log.warn({ upstream: name, reason: code, detail }, 'a revoked session could not be revoked at the upstream')
    }
  }

  return {
    begin({ providers }) {
      for (const [name, held] of providers) {
        if (running.size >= MOST_AT_ONCE) return
        const telling = tell(name, held).finally(() => running.delete(telling))
        running.add(telling)
      }
    },
    async settle() {
      await Promise.all(running)
    },
  }
}
