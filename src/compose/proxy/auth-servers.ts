import type { AuthServer, AuthServerConfig, AuthServerDeps } from '../../authserver/index.ts'
import type { InProcessProvider } from '../../authenticate/index.ts'
import { type Clock, type Log, type Metrics, RefCountedPool } from '../../core/index.ts'
import type { ObtainDeps } from '../../obtain/index.ts'
import type { ResolvedAuthServer, ResolvedRoute } from '../../resources/index.ts'
import type { ResolvedProxy } from '../../load/index.ts'
import type { OpenSecrets } from '../../secrets/index.ts'
import type { EphemeralKeys } from '../../signing/index.ts'
import type { Stores } from '../../storage/index.ts'
import { placed } from '../config-error.ts'
import type { LazyModules } from './lazy-modules.ts'
import type { NamedFiles } from '../named-files.ts'
import type { NamedSeries } from '../named-series.ts'
import { resourceUrlOf, scopesOf } from '../resource-documents.ts'
import { storageConfig } from '../storage-config.ts'

interface AuthServersDeps {
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  readonly outbound: ObtainDeps['outbound']
  readonly series: NamedSeries
  readonly secrets: OpenSecrets
  readonly namedFiles: NamedFiles
  readonly stores: Pick<Stores, 'open'>
  /** Keys for a server that has none configured, asked for once. Default: made here. */
  readonly ephemeralKeys: ((server: string) => EphemeralKeys) | undefined
}

/** How a route's authenticator knows its authorization server: the same key, the same verifier. */
export interface RouteIssuer {
  readonly key: string
  readonly provider: InProcessProvider
}

/** The authorization servers of one configuration. */
export interface HeldAuthServers {
  readonly all: readonly AuthServer[]
  /** The server at which callers of a route log in; undefined when there is none. */
  of(route: ResolvedRoute): AuthServer | undefined
  issuerOf(route: ResolvedRoute): RouteIssuer | undefined
  release(): Promise<void>
}

/**
 * Authorization servers that are kept over reloads which do not change them. What is stored outlives the others too: the store
 * of a server is found by its name, and keys that were made for want of configured ones are the same for as long as the
 * process lives.
 */
export interface AuthServers {
  /** Opens those that `config` needs and nobody holds yet. Throws `config_error` for one that can't be opened. */
  hold(config: ResolvedProxy, listenUrl: string, modules: LazyModules): HeldAuthServers
}

interface Opened {
  readonly server: AuthServer
  close(): Promise<void>
}

/** Keeps one server per different configuration of a server and of the routes that use it. */
export function createAuthServers(deps: AuthServersDeps): AuthServers {
  const ephemeral = new Map<string, EphemeralKeys>()
  const pool = new RefCountedPool<Opened>((opened) => opened.close())

  const open = (
    { name, namespace, spec }: ResolvedAuthServer,
    config: AuthServerConfig,
    { openAuthServer, createEphemeralKeys }: NonNullable<LazyModules['authServer']>,
  ): Opened => {
    const keys = ephemeral.get(name) ?? deps.ephemeralKeys?.(name) ?? createEphemeralKeys()
    ephemeral.set(name, keys)
    // Its own: the server may outlive the configuration that opened it.
    const secrets = deps.secrets.hold()
    const files = deps.namedFiles.hold()
    const tokenFile: AuthServerDeps['tokenFile'] = (path) => files.token(path)
    const store = deps.stores.open(storageConfig(spec.storage ?? { type: 'memory' }, namespace, secrets), name)
    const letGo = async (): Promise<void> => {
      secrets.release()
      files.release()
      await store.close()
    }
    try {
      const server = openAuthServer(config, { ...deps, secrets, tokenFile, store, ephemeral: keys })
      for (const warning of server.warnings) deps.log.warn({}, warning)
      const releases = spec.upstreamProviders.map((upstream) => deps.series.hold('upstream', upstream.name))
      const close = async (): Promise<void> => {
        await server.close()
        await letGo()
        for (const release of releases) release()
      }
      return { server, close }
    } catch (error) {
      void letGo()
      throw error
    }
  }

  return {
    hold(config, listenUrl, { authServer: module }) {
      const held = pool.hold()
      const byName = new Map<string, { readonly key: string; readonly server: AuthServer }>()
      try {
        for (const resolved of config.authServers) {
          const { name, spec, configHash } = resolved
          const resources = resourcesOf(resolved, config.routes, listenUrl)
          const key = JSON.stringify([name, configHash, resources])
          const { server } = placed(config.places, { authServer: name }, () =>
            held.get(key, () => {
              if (module === undefined) throw new TypeError('the authorization server was not loaded')
              return open(resolved, { name, spec, resources }, module)
            }),
          )
          byName.set(name, { key, server })
        }
      } catch (error) {
        void held.release()
        throw error
      }
      const find = ({ authServer }: ResolvedRoute) => byName.get(authServer?.server.name ?? '')
      return {
        all: [...byName.values()].map(({ server }) => server),
        of: (route) => find(route)?.server,
        issuerOf(route) {
          const found = find(route)
          if (found === undefined) return undefined
          const audience = resourceUrlOf(route, listenUrl)
          return { key: JSON.stringify([found.key, audience]), provider: { issuer: found.server.issuer, audience } }
        },
        release: () => held.release(),
      }
    },
  }
}

/** What clients log in for: each resource of the routes that use the server, with what all of its routes need. */
function resourcesOf(
  server: ResolvedAuthServer,
  routes: readonly ResolvedRoute[],
  listenUrl: string,
): AuthServerConfig['resources'] {
  const using = routes.filter((route) => route.authServer?.server.name === server.name)
  return [...Map.groupBy(using, (route) => resourceUrlOf(route, listenUrl))].map(([url, group]) => ({
    url,
    scopes: [...new Set(group.flatMap(scopesOf))],
    providers: [...new Set(group.flatMap(({ authServer }) => authServer?.providers ?? []))],
  }))
}
