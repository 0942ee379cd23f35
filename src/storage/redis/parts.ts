import type { RedisConfig, RedisRuntime } from './config.ts'
import type { Connection } from './connection.ts'
import { createDurableWriter } from './durable.ts'
import { createLink, type LastingWrite, type Link } from './link.ts'
import { createRedisLocks, type RedisLocks } from './locks.ts'
import { createMaster, type Master } from './master.ts'
import { createMessages, type Messages } from './messages.ts'
import { refusedCommands } from './permissions.ts'
import type { Log } from '../../core/index.ts'

export interface OpenParts {
  /** Writes complete when the master has them. */
  readonly plain: RedisParts
  /** Writes complete when the configured replicas have them; connects on first use. */
  durable(): RedisParts
  /** Why messages of other replicas are not received, as text. */
  readonly messagesProblem: string | undefined
  /** State reported by the master. */
  readonly reported: Master['reported']
  /** Needed commands that the master rejects for keys with this prefix, as text. Throws `StoreError`. */
  refusals(prefix: string): Promise<readonly string[]>
  close(): void
}

/**
 * Opens the connections of one configuration: for commands, for messages on first use, and for durable writes on first
 * use. Connects at once; never throws.
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
    reported: master.reported,
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

/** Writers that share a connection share each `WAIT`. */
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

/** Shared by all stores of one configuration. */
export interface RedisParts {
  readonly link: Link
  readonly write: LastingWrite
  readonly locks: RedisLocks
  readonly messages: Pick<Messages, 'subscribe'>
  readonly db: number
  readonly log: Log
  /** What is down, as text; undefined if healthy. */
  readonly problem: string | undefined
}
