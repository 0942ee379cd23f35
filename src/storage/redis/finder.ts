import type { Endpoint, RedisConfig } from './config.ts'
import type { Connection } from './connection.ts'
import { createSentinels } from './sentinels.ts'

/** Knows where the master is. */
export interface Finder {
  /** Where it is now. Throws `StoreError` `unavailable`. */
  find(): Promise<Endpoint>
  /** Those of the connections that lead to something else by now. */
  strays(open: ReadonlySet<Connection>): Promise<readonly Connection[]>
  /** What people are told when that turns out to be no master. */
  readonly noMaster: string
}

/** By the sentinels; or the one server of the configuration, which is asked itself whether it is still a master. */
export function createFinder(config: RedisConfig): Finder {
  const { server } = config
  return server === undefined ? bySentinels(config) : fixed(server)
}

function bySentinels(config: RedisConfig): Finder {
  const sentinels = createSentinels(config)
  return {
    find: () => sentinels.master(),
    async strays(open) {
      const { host, port } = await sentinels.master()
      return [...open].filter(({ endpoint }) => endpoint.host !== host || endpoint.port !== port)
    },
    noMaster: 'what the sentinels name is not a master',
  }
}

/** Its name leads to another server after a failover that is not ours; connections to the old one would stay. */
const fixed = (server: Endpoint): Finder => ({
  find: () => Promise.resolve(server),
  async strays(open) {
    // One that listens to messages can't be asked; it goes with the others.
    const roles = await Promise.all([...open].map((connection) => roleOf(connection).catch(() => 'master')))
    return roles.every((role) => role === 'master') ? [] : [...open]
  },
  noMaster: 'the server at addr is not a master',
})

/** `master`, or what a server says of itself otherwise. */
export async function roleOf(connection: Connection): Promise<string> {
  const role = await connection.call(['role'])
  return Array.isArray(role) ? String(role[0]) : ''
}
