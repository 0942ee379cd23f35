import type { Endpoint, RedisConfig } from './config.ts'
import type { Connection } from './connection.ts'
import { createSentinels } from './sentinels.ts'

/** Locates the master. */
export interface Finder {
  /** Current address. Throws `StoreError` `unavailable`. */
  find(): Promise<Endpoint>
  /** Connections to servers that are no longer the master. */
  outdated(open: ReadonlySet<Connection>): Promise<readonly Connection[]>
  /** Problem if the located server is not a master. */
  readonly noMaster: string
}

/** Locates the master by the sentinels; or checks that the single configured server is a master. */
export function createFinder(config: RedisConfig): Finder {
  const { server } = config
  return server === undefined ? bySentinels(config) : fixed(server)
}

function bySentinels(config: RedisConfig): Finder {
  const sentinels = createSentinels(config)
  return {
    find: () => sentinels.master(),
    async outdated(open) {
      const { host, port } = await sentinels.master()
      return [...open].filter(({ endpoint }) => endpoint.host !== host || endpoint.port !== port)
    },
    noMaster: 'the server named by the sentinels is not a master',
  }
}

/** After a failover, the name leads to a different server; connections to the old one would remain. */
const fixed = (server: Endpoint): Finder => ({
  find: () => Promise.resolve(server),
  async outdated(open) {
    // Subscribed connections cannot be queried; they are closed with the others.
    const roles = await Promise.all([...open].map((connection) => roleOf(connection).catch(() => 'master')))
    return roles.every((role) => role === 'master') ? [] : [...open]
  },
  noMaster: 'the server at addr is not a master',
})

/** The role of a server: `master` or other. */
export async function roleOf(connection: Connection): Promise<string> {
  const role = await connection.call(['role'])
  return Array.isArray(role) ? String(role[0]) : ''
}
