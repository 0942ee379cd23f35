import { asFailure, type Log } from '../../core/index.ts'
import type { Upstream } from '../../upstreams/index.ts'
import type { HeldTokens, SessionRecord } from './record.ts'

/** Revokes the tokens of ended sessions at the upstreams. */
export interface Revocations {
  /** Starts the revocation at all upstreams without waiting; failures are logged. */
  begin(record: SessionRecord): void
  /** Waits for revocations in flight; each has a deadline. */
  settle(): Promise<void>
}

/** More concurrent revocations are skipped: the upstream's tokens expire on their own. */
const MOST_AT_ONCE = 1000

/** Best effort (RFC 7009): the session is over here regardless. */
export function createRevocations(upstreams: ReadonlyMap<string, Upstream>, log: Log): Revocations {
  const running = new Set<Promise<void>>()

  const revoke = async (name: string, held: HeldTokens): Promise<void> => {
    try {
      await upstreams.get(name)?.revoke?.(held, held.user)
    } catch (error) {
      const { code, detail } = asFailure(error)
      log.warn({ upstream: name, reason: code, detail }, 'revocation at the upstream failed')
    }
  }

  return {
    begin({ providers }) {
      for (const [name, held] of providers) {
        if (running.size >= MOST_AT_ONCE) return
        const revoking = revoke(name, held).finally(() => running.delete(revoking))
        running.add(revoking)
      }
    },
    async settle() {
      await Promise.all(running)
    },
  }
}
