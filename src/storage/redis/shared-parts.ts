import type { Link, UseOptions } from './link.ts'
import type { Messages } from './messages.ts'
import type { RedisLocks } from './locks.ts'
import type { Connection } from './connection.ts'
/** What all stores of one configuration share. */
export interface RedisParts {
  readonly link: Link
  /** Runs a write where it lasts as long as it was configured to. */
  write(work: (connection: Connection) => Promise<unknown>, options: UseOptions): Promise<unknown>
  readonly locks: RedisLocks
  readonly messages: Pick<Messages, 'subscribe'>
  readonly db: number
  /** What is down, for people; undefined when nothing is. */
  readonly problem: string | undefined
}
