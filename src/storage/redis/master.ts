import { StoreError } from '../port.ts'
import type { RedisConfig, RedisRuntime } from './config.ts'
import { openConnection, type Connection } from './connection.ts'
import { createFinder, roleOf } from './finder.ts'
import { ReplyError } from './reply-errors.ts'
import { createServerLook, type ServerLook } from './server-look.ts'

/** How often it is asked whether the master is still the master. */
const WATCH_MS = 5_000
/** So many of these later the master is looked at again: its settings can change while it runs. */
const LOOKS_EACH = 6

/** Opens connections to whatever is the master now. */
export interface Master {
  /** A connection that is logged in, on the right database, to a server that says it is a master. Throws `StoreError`. */
  connect(): Promise<Connection>
  /** What the last one said of itself. */
  readonly said: Pick<ServerLook, 'clockAheadMs' | 'remark' | 'isBlind'>
  close(): void
}

/** Connects to the master that is found, and ends connections to one that is not the master any more. */
export function createMaster(config: RedisConfig, runtime: RedisRuntime): Master {
  const finder = createFinder(config)
  const open = new Set<Connection>()
  const failovers = runtime.metrics
    .counter('extauth_store_failovers_total', 'Times that the sentinels named another master than before.')
    .with()
  const look = createServerLook(runtime)
  let last: string | undefined
  let turn = 0

  const watch = async () => {
    if (open.size === 0) return
    for (const connection of await finder.strays(open)) connection.destroy()
    turn = (turn + 1) % LOOKS_EACH
    const [one] = open
    if (turn === 0 && one !== undefined) await look.at(one)
  }
  const watching = setInterval(() => {
    // Nobody to ask is no reason to let a connection go that works.
    watch().catch(() => undefined)
  }, WATCH_MS)
  watching.unref()

  const note = (address: string) => {
    if (last !== undefined && last !== address) {
      failovers.add()
      runtime.log.warn({}, 'the store has another master')
    }
    last = address
  }

  return {
    async connect() {
      const endpoint = await finder.find()
      const connection = await openConnection({ ...config, ...endpoint })
      try {
        await logIn(connection, config, finder.noMaster)
      } catch (error) {
        connection.destroy()
        throw error
      }
      note(`${endpoint.host} ${endpoint.port}`)
      await look.at(connection)
      open.add(connection)
      void connection.closed.finally(() => open.delete(connection))
      return connection
    },
    said: look,
    close() {
      clearInterval(watching)
      for (const connection of open) connection.destroy()
    },
  }
}

async function logIn(connection: Connection, { username, password, db }: RedisConfig, noMaster: string): Promise<void> {
  try {
    const name = username === undefined ? [] : [username.current().reveal()]
    await connection.call(['auth', ...name, password.current().reveal()])
  } catch (error) {
    // A rotated password is used with the next attempt.
    if (error instanceof ReplyError) await Promise.all([username?.refresh(), password.refresh()])
    throw error
  }
  // Fails while the server still loads its data.
  await connection.call(['ping'])
  if (db !== 0) await connection.call(['select', db])
  if ((await roleOf(connection)) !== 'master') throw new StoreError('unavailable', { cause: noMaster })
}
