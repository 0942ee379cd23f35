import type { AuthServer } from '../../authserver/index.ts'
import type { ConnectionsConfig, ConnectionService, openConnections } from '../../connections/index.ts'
import { RefCountedPool } from '../../core/index.ts'
import type { ResolvedProxy } from '../../load/index.ts'
import { connectionsOf, type ResolvedConnections } from '../../resources/index.ts'
import { createEphemeralKeys, type EphemeralKeys } from '../../signing/index.ts'
import { placed } from '../config-error.ts'
import { storageConfig } from '../storage-config.ts'
import type { AuthServersDeps, HeldAuthServers, LazyModules } from './pools.ts'

/** The connections of one configuration. */
export interface HeldConnections {
  /** Undefined without `connections`. */
  readonly service: ConnectionService | undefined
  release(): Promise<void>
}

/** Keeps connections over reloads that do not change them. State survives changes too, as with authorization servers. */
export interface ConnectionPool {
  /**
   * Opens the connections of `config` unless they are open. `authServers` are those of `config`, and released later.
   * Throws `config_error`.
   */
  hold(
    config: ResolvedProxy,
    listenUrl: string,
    modules: LazyModules,
    authServers: Pick<HeldAuthServers, 'serversOf'>,
  ): HeldConnections
}

/** The name of their keys and state, apart from those of authorization servers. */
export const stateOfConnections = ({ name }: ResolvedConnections): string => `${name}:connections`

interface Opened {
  readonly service: ConnectionService
  close(): Promise<void>
}

export function createConnectionPool(deps: AuthServersDeps): ConnectionPool {
  const ephemeral = new Map<string, EphemeralKeys>()
  const pool = new RefCountedPool<Opened>((opened) => opened.close())

  const open = (
    resolved: ResolvedConnections,
    config: ConnectionsConfig,
    openAll: typeof openConnections,
    servers: readonly AuthServer[],
  ): Opened => {
    const state = stateOfConnections(resolved)
    const keys = ephemeral.get(state) ?? deps.ephemeralKeys?.(state) ?? createEphemeralKeys()
    ephemeral.set(state, keys)
    // Its own holder: the service may outlive the configuration that opened it.
    const materials = deps.materials.hold()
    const { secrets, tokenFile } = materials
    const { spec, namespace } = resolved
    const store = deps.stores.open(storageConfig(spec.storage ?? { type: 'memory' }, namespace, secrets), state)
    const letGo = async (): Promise<void> => {
      materials.release()
      await store.close()
    }
    try {
      const embedded = servers.map(({ addresses: { issuer }, persons }) => ({ issuer, persons }))
      const service = openAll(config, { ...deps, secrets, tokenFile, store, ephemeral: keys, embedded })
      const releases = spec.providers.flatMap(({ name }) => [
        deps.series.hold('upstream', name),
        deps.series.hold('provider', name),
      ])
      const close = async (): Promise<void> => {
        await service.close()
        await letGo()
        for (const release of releases) release()
      }
      return { service, close }
    } catch (error) {
      void letGo()
      throw error
    }
  }

  return {
    hold(config, listenUrl, { connections: module }, authServers) {
      const resolved = config.connections
      if (resolved === undefined) return { service: undefined, release: () => Promise.resolve() }
      const held = pool.hold()
      const { name, spec } = resolved
      const routes = config.routes
        .map((route) => {
          const { origin, host, path } = route.target
          return { name: route.name, host, url: `${origin}${path}`, providers: connectionsOf(route) }
        })
        .filter(({ providers }) => providers.length > 0)
      const { key, servers } = authServers.serversOf(
        config.routes.filter((route) => !spec.singleUser && connectionsOf(route).length > 0),
      )
      const opening: ConnectionsConfig = { name, spec, listenUrl, routes }
      try {
        const { service } = placed(config.places, { process: 'connections' }, () =>
          held.get(JSON.stringify([opening, key]), () => {
            if (module === undefined) throw new TypeError('the connections were not loaded')
            return open(resolved, opening, module.openConnections, servers)
          }),
        )
        return { service, release: () => held.release() }
      } catch (error) {
        void held.release()
        throw error
      }
    },
  }
}
