import { type Authenticator, createAuthenticator, type InProcessProvider } from '../../authenticate/index.ts'
import type * as authServerModule from '../../authserver/index.ts'
import type { AuthServer, AuthServerConfig } from '../../authserver/index.ts'
import type * as connectionsModule from '../../connections/index.ts'
import { type AuditSink, type Clock, type Log, type Metrics, RefCountedPool } from '../../core/index.ts'
import type { ResolvedProxy } from '../../load/index.ts'
import type { ObtainDeps } from '../../obtain/index.ts'
import { type AuthSection, connectionsOf, type ResolvedAuthServer, type ResolvedRoute } from '../../resources/index.ts'
import type { EphemeralKeys } from '../../signing/index.ts'
import type * as telemetryModule from '../../telemetry/index.ts'
import type { Stores } from '../../storage/index.ts'
import { placed } from '../config-error.ts'
import type { Materials } from '../materials.ts'
import type { NamedSeries } from '../named-series.ts'
import { resourceUrlOf, scopesOf } from '../resource-documents.ts'
import { storageConfig } from '../storage-config.ts'

// A reload keeps unchanged authenticators and authorization servers: the first configuration that needs
// one opens it, the last one closes it.

type AuthenticateDeps = Parameters<typeof createAuthenticator>[1]

/** The authenticators of one configuration; routes with equal `auth` sections share one. */
export interface HeldAuthenticators {
  /** The authenticator of a section and of an optional local issuer. It has fetched nothing yet. */
  get(section: AuthSection, own?: RouteIssuer): Authenticator
  /** Called when the configuration becomes active: prefetches keys. */
  start(): void
  /** Names of identity providers whose keys were requested and never received. */
  withoutKeys(): readonly string[]
  release(): Promise<void>
}

/** Keeps authenticators over reloads that do not change their section. */
export interface Authenticators {
  hold(): HeldAuthenticators
}

type OpenDeps = Omit<AuthenticateDeps, 'client'> & {
  readonly series: NamedSeries
  readonly materials: Materials
}

/** Opens an authenticator that owns its secrets, files and metric series until it is closed. Throws what `createAuthenticator` throws. */
export function openAuthenticator(
  section: AuthSection,
  deps: OpenDeps,
  inProcess: readonly InProcessProvider[] = [],
): Authenticator {
  const client = deps.materials.hold()
  try {
    const authenticator = createAuthenticator(section, { ...deps, client }, inProcess)
    const providers = section.mode === 'oauth' ? section.oauth.providers : []
    const releases = [() => client.release(), ...providers.map(({ name }) => deps.series.hold('name', name))]
    const release = (): void => {
      for (const one of releases) one()
    }
    return { ...authenticator, close: () => authenticator.close().finally(release) }
  } catch (error) {
    client.release()
    throw error
  }
}

export function createAuthenticators(deps: OpenDeps): Authenticators {
  const pool = new RefCountedPool<Authenticator>((authenticator) => authenticator.close())
  const started = new WeakSet<Authenticator>()
  return {
    hold() {
      const held = pool.hold()
      const used = new Set<Authenticator>()
      return {
        get(section, own) {
          const inProcess = own === undefined ? [] : [own.provider]
          const key = JSON.stringify([section, own?.key])
          const authenticator = held.get(key, () => openAuthenticator(section, deps, inProcess))
          used.add(authenticator)
          return authenticator
        },
        start() {
          for (const authenticator of used) {
            if (started.has(authenticator)) continue
            started.add(authenticator)
            // The authenticator logs failures and retries.
            void authenticator.start()
          }
        },
        withoutKeys: () => [...new Set([...used].flatMap((authenticator) => authenticator.withoutKeys()))],
        release: () => held.release(),
      }
    },
  }
}

/** Dependencies of authorization servers, and of connections. */
export interface AuthServersDeps {
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  readonly outbound: ObtainDeps['outbound']
  readonly series: NamedSeries
  readonly materials: Materials
  readonly stores: Pick<Stores, 'open'>
  readonly audit: AuditSink
  /** Returns the keys of a server without configured keys; called once per server. Default: generated in this process. */
  readonly ephemeralKeys: ((server: string) => EphemeralKeys) | undefined
}

/** The authorization server of a route as its authenticator sees it; equal keys mean the same verifier. */
export interface RouteIssuer {
  readonly key: string
  readonly provider: InProcessProvider
}

/** The authorization servers of one configuration. */
export interface HeldAuthServers {
  readonly all: readonly AuthServer[]
  /** The server where callers of a route log in; undefined without one. */
  of(route: ResolvedRoute): AuthServer | undefined
  issuerOf(route: ResolvedRoute): RouteIssuer | undefined
  /** The servers where callers of these routes log in; equal keys mean the same servers. */
  serversOf(routes: readonly ResolvedRoute[]): { readonly key: string; readonly servers: readonly AuthServer[] }
  release(): Promise<void>
}

/**
 * Keeps authorization servers over reloads that do not change them. State survives changes too: the store is found by
 * the server's name, and generated keys live as long as the process.
 */
export interface AuthServers {
  /** Opens the servers of `config` that are not open yet. Throws `config_error` if one can't be opened. */
  hold(config: ResolvedProxy, listenUrl: string, modules: LazyModules): HeldAuthServers
}

interface Opened {
  readonly server: AuthServer
  close(): Promise<void>
}

/** Keeps one server per distinct configuration of the server and its routes. */
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
    // Its own holder: the server may outlive the configuration that opened it.
    const materials = deps.materials.hold()
    const { secrets, tokenFile } = materials
    const store = deps.stores.open(storageConfig(spec.storage ?? { type: 'memory' }, namespace, secrets), name)
    const letGo = async (): Promise<void> => {
      materials.release()
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
          const using = config.routes.filter((route) => route.authServer?.server.name === name)
          const resources = resourcesOf(using, listenUrl)
          const remembersPersons = using.some((route) => connectionsOf(route).length > 0)
          const key = JSON.stringify([name, configHash, resources, remembersPersons])
          const { server } = placed(config.places, { authServer: name }, () =>
            held.get(key, () => {
              if (module === undefined) throw new TypeError('the authorization server was not loaded')
              return open(resolved, { name, spec, resources, remembersPersons }, module)
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
        serversOf(routes) {
          const found = new Set(routes.flatMap((route) => find(route) ?? []))
          return {
            key: JSON.stringify([...found].map(({ key }) => key)),
            servers: [...found].map(({ server }) => server),
          }
        },
        release: () => held.release(),
      }
    },
  }
}

/** The resources that clients log in for, each with the combined needs of its routes. */
function resourcesOf(using: readonly ResolvedRoute[], listenUrl: string): AuthServerConfig['resources'] {
  return [...Map.groupBy(using, (route) => resourceUrlOf(route, listenUrl))].map(([url, group]) => ({
    url,
    scopes: [...new Set(group.flatMap(scopesOf))],
    providers: [...new Set(group.flatMap(({ authServer }) => authServer?.providers ?? []))],
  }))
}

/** Modules that only some configurations need: each costs 30 ms or more at start, and 6 MiB. */
export interface LazyModules {
  /** Loaded if the configuration has an authorization server. */
  readonly authServer: typeof authServerModule | undefined
  /** Loaded if the configuration has connections. */
  readonly connections: typeof connectionsModule | undefined
  /** Loaded if a route sends traces. */
  readonly telemetry: typeof telemetryModule | undefined
}

/** Loads the lazy modules that `config` needs. */
export async function loadModules({ authServers, connections: used, routes }: ResolvedProxy): Promise<LazyModules> {
  const [authServer, connections, telemetry] = await Promise.all([
    authServers.length > 0 ? import('../../authserver/index.ts') : undefined,
    used === undefined ? undefined : import('../../connections/index.ts'),
    routes.some((route) => route.telemetry !== undefined) ? import('../../telemetry/index.ts') : undefined,
  ])
  return { authServer, connections, telemetry }
}
