import { asFailure, type Log } from '../../core/index.ts'
import type { Upstream } from '../../upstreams/index.ts'
import type { HeldTokens, SessionRecord } from './record.ts'

/** `unsupported`: the upstream has no revocation endpoint. */
export type RevocationOutcome = 'revoked' | 'unsupported' | 'failed'

/** Revokes the tokens of ended sessions at the upstreams. */
export interface Revocations {
  /** Starts the revocation at all upstreams; failures are logged. Resolves to the outcome by upstream. */
  begin(record: SessionRecord): Promise<ReadonlyMap<string, RevocationOutcome>>
  /** Waits for revocations in flight; each has a deadline. */
  settle(): Promise<void>
}

/** More concurrent revocations are skipped: the upstream's tokens expire on their own. */
const MOST_AT_ONCE = 1000

/** Best effort (RFC 7009): the session is over here regardless. */
export function createRevocations(upstreams: ReadonlyMap<string, Upstream>, log: Log): Revocations {
  const running = new Set<Promise<unknown>>()

  const revoke = async (name: string, held: HeldTokens): Promise<RevocationOutcome> => {
    try {
      return (await upstreams.get(name)?.revoke?.(held, held.user)) === true ? 'revoked' : 'unsupported'
    } catch (error) {
      const { code, detail } = asFailure(error)
      log.warn({ upstream: name, reason: code, detail }, 'revocation at the upstream failed')
      return 'failed'
    }
  }

  return {
    async begin({ providers }) {
      const outcomes = [...providers].map(async ([name, held]): Promise<[string, RevocationOutcome]> => {
        if (running.size >= MOST_AT_ONCE) return [name, 'failed']
        const revoking = revoke(name, held).finally(() => running.delete(revoking))
        running.add(revoking)
        return [name, await revoking]
      })
      return new Map(await Promise.all(outcomes))
    },
    async settle() {
      await Promise.all(running)
    },
  }
}
