import { StoreError } from '../port.ts'
import type { RedisConfig, RedisRuntime } from './config.ts'
import { openConnection, type Connection } from './connection.ts'
import { createFinder, roleOf } from './finder.ts'
import { ReplyError } from './reply-errors.ts'
import { createServerLook, type ServerLook } from './server-look.ts'

/** Interval of the master check. */
const WATCH_MS = 5_000
/** The settings of the master are read at every n-th check: they can change. */
const LOOKS_EACH = 6

/** Opens connections to the current master. */
export interface Master {
  /**
   * Opens an authenticated connection to a server that is a master, with the database selected. Throws `StoreError`.
   */
  connect(): Promise<Connection>
  /** State that the last master reported. */
  readonly reported: Pick<ServerLook, 'clockAheadMs' | 'remark' | 'isBlind'>
  close(): void
}

/** Connects to the located master, and closes connections to former ones. */
export function createMaster(config: RedisConfig, runtime: RedisRuntime): Master {
  const finder = createFinder(config)
  const open = new Set<Connection>()
  const failovers = runtime.metrics
    .counter('extauth_store_failovers_total', 'Failovers: the sentinels named a different master.')
    .with()
  const look = createServerLook(runtime)
  let last: string | undefined
  let turn = 0

  const watch = async () => {
    if (open.size === 0) return
    for (const connection of await finder.outdated(open)) connection.destroy()
    turn = (turn + 1) % LOOKS_EACH
    const [one] = open
    if (turn === 0 && one !== undefined) await look.at(one)
  }
  const watching = setInterval(() => {
    // Unreachable sentinels are no reason to close a working connection.
    watch().catch(() => undefined)
  }, WATCH_MS)
  watching.unref()

  const note = (address: string) => {
    if (last !== undefined && last !== address) {
      failovers.add()
      runtime.log.warn({}, 'store failed over to a different master')
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
    reported: look,
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
    // A rotated password applies to the next attempt.
    if (error instanceof ReplyError) await Promise.all([username?.refresh(), password.refresh()])
    throw error
  }
  // Fails while the server loads its data.
  await connection.call(['ping'])
  if (db !== 0) await connection.call(['select', db])
  if ((await roleOf(connection)) !== 'master') throw new StoreError('unavailable', { cause: noMaster })
}
