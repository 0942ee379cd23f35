import type { Log } from '../../core/index.ts'
import type { LastingWrite, Link } from './link.ts'
import type { Messages } from './messages.ts'
import type { RedisLocks } from './locks.ts'

/** What all stores of one configuration share. */
export interface RedisParts {
  readonly link: Link
  readonly write: LastingWrite
  readonly locks: RedisLocks
  readonly messages: Pick<Messages, 'subscribe'>
  readonly db: number
  readonly log: Log
  /** What is down, for people; undefined when nothing is. */
  readonly problem: string | undefined
}
