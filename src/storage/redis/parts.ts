import type { RedisConfig, RedisRuntime } from './config.ts'
import type { Connection } from './connection.ts'
import { createDurableWriter } from './durable.ts'
import { createLink } from './link.ts'
import { createRedisLocks } from './locks.ts'
import { createMaster } from './master.ts'
import { createMessages } from './messages.ts'
import type { RedisParts } from './store.ts'

export interface OpenParts extends RedisParts {
  close(): void
}

/**
 * The connections of one configuration: one for commands, one for messages once somebody listens, and one for writes that wait
 * for replicas where that is asked for. Starts connecting at once and never throws.
 */
export function openParts(config: RedisConfig, runtime: RedisRuntime): OpenParts {
  const master = createMaster(config, runtime)
  const shared = { master, config, runtime }
  const link = createLink({ ...shared, purpose: 'commands' })
  const messages = createMessages(runtime.log, (hooks) => createLink({ ...shared, ...hooks, purpose: 'messages' }))
  const durable = config.waitReplicas > 0 ? createLink({ ...shared, purpose: 'durable writes' }) : undefined
  const writers = new WeakMap<Connection, ReturnType<typeof createDurableWriter>>()

  const writerOf = (connection: Connection) => {
    const known = writers.get(connection)
    if (known !== undefined) return known
    const writer = createDurableWriter(connection, config.waitReplicas, config.readTimeoutMs)
    writers.set(connection, writer)
    return writer
  }

  const write: RedisParts['write'] = (work, options) =>
    durable === undefined ? link.use(work, options) : durable.use((connection) => writerOf(connection)(work), options)

  return {
    link,
    write,
    locks: createRedisLocks(link, write, runtime.metrics, runtime.random),
    messages,
    db: config.db,
    get problem() {
      return link.problem ?? durable?.problem ?? messages.problem
    },
    close() {
      link.close()
      messages.close()
      durable?.close()
      master.close()
    },
  }
}
