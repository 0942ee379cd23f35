import type { RedisConfig, RedisRuntime } from './config.ts'
import type { Connection } from './connection.ts'
import { createDurableWriter } from './durable.ts'
import { createLink, type LastingWrite, type Link } from './link.ts'
import { createRedisLocks, type RedisLocks } from './locks.ts'
import { createMaster, type Master } from './master.ts'
import { createMessages, type Messages } from './messages.ts'
import { refusedCommands } from './rights.ts'
import type { Log } from '../../core/index.ts'

export interface OpenParts {
  /** Writes count as soon as the master has them. */
  readonly plain: RedisParts
  /** Writes count when as many replicas have them as is configured; connects for them when it is first asked for. */
  durable(): RedisParts
  /** Why messages of other replicas are not received, for people. */
  readonly messagesProblem: string | undefined
  /** What the master says of itself. */
  readonly said: Master['said']
  /** What the master refuses of the commands that are needed for keys with this prefix, for people. Throws `StoreError`. */
  refusals(prefix: string): Promise<readonly string[]>
  close(): void
}

/**
 * The connections of one configuration: one for commands, one for messages once somebody listens, and one for writes that wait
 * for replicas once somebody writes what must. Starts connecting at once and never throws.
 */
export function openParts(config: RedisConfig, runtime: RedisRuntime): OpenParts {
  const master = createMaster(config, runtime)
  const shared = { master, config, runtime }
  const link = createLink({ ...shared, purpose: 'commands' })
  const messages = createMessages(runtime.log, (hooks) => createLink({ ...shared, ...hooks, purpose: 'messages' }))
  let waiting: Link | undefined

  const parts = (write: RedisParts['write'], writer?: Link): RedisParts => ({
    link,
    write,
    locks: createRedisLocks(link, write, runtime.metrics, runtime.random),
    messages,
    db: config.db,
    log: runtime.log,
    get problem() {
      return link.problem ?? writer?.problem
    },
  })
  const plain = parts((work, options) => link.use(work, options))

  return {
    plain,
    get messagesProblem() {
      return messages.problem
    },
    said: master.said,
    durable() {
      if (config.waitReplicas === 0) return plain
      const writer = (waiting ??= createLink({ ...shared, purpose: 'durable writes' }))
      return parts(durably(writer, config), writer)
    },
    async refusals(prefix) {
      const connection = await master.connect()
      try {
        return await refusedCommands(connection, prefix, config)
      } finally {
        connection.destroy()
      }
    },
    close() {
      link.close()
      messages.close()
      waiting?.close()
      master.close()
    },
  }
}

/** Those that share a connection share its `WAIT`s. */
const WRITERS = new WeakMap<Connection, ReturnType<typeof createDurableWriter>>()

function durably(link: Link, config: RedisConfig): RedisParts['write'] {
  const writerOf = (connection: Connection) => {
    const known = WRITERS.get(connection)
    if (known !== undefined) return known
    const writer = createDurableWriter(connection, config.waitReplicas, config.readTimeoutMs)
    WRITERS.set(connection, writer)
    return writer
  }
  return (work, options) => link.use((connection) => writerOf(connection)(work), options)
}

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
