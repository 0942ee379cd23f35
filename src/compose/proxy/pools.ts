import { type Authenticator, createAuthenticator, type InProcessProvider } from '../../authenticate/index.ts'
import type * as authServerModule from '../../authserver/index.ts'
import type { AuthServer, AuthServerConfig } from '../../authserver/index.ts'
import { type Clock, type Log, type Metrics, RefCountedPool } from '../../core/index.ts'
import type { ResolvedProxy } from '../../load/index.ts'
import type { ObtainDeps } from '../../obtain/index.ts'
import type { AuthSection, ResolvedAuthServer, ResolvedRoute } from '../../resources/index.ts'
import type { EphemeralKeys } from '../../signing/index.ts'
import type * as telemetryModule from '../../telemetry/index.ts'
import type { Stores } from '../../storage/index.ts'
import { placed } from '../config-error.ts'
import type { Materials } from '../materials.ts'
import type { NamedSeries } from '../named-series.ts'
import { resourceUrlOf, scopesOf } from '../resource-documents.ts'
import { storageConfig } from '../storage-config.ts'

// Authenticators and authorization servers are kept over reloads that do not change them: each is opened by the first
// configuration that names it, and closed with the last.

type AuthenticateDeps = Parameters<typeof createAuthenticator>[1]

/** The authenticators of one configuration; routes with the same `auth` section share one. */
export interface HeldAuthenticators {
  /** The authenticator of a section, and of an issuer in this process beside it; nothing is fetched for it yet. */
  get(section: AuthSection, own?: RouteIssuer): Authenticator
  /** The configuration is in force: keys are fetched ahead of the first caller. */
  start(): void
  /** Names of the providers whose keys were asked for and never came. */
  withoutKeys(): readonly string[]
  release(): Promise<void>
}

/** Authenticators that are kept over reloads which do not change their section, closed with the last that has it. */
export interface Authenticators {
  hold(): HeldAuthenticators
}

type OpenDeps = Omit<AuthenticateDeps, 'client'> & {
  readonly series: NamedSeries
  readonly materials: Materials
}

/** An authenticator that holds its secrets, its files and the series of its providers until it is closed. Throws as `createAuthenticator` does. */
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

/** Keeps one authenticator per different section. */
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
            // What fails is logged there and tried again.
            void authenticator.start()
          }
        },
        withoutKeys: () => [...new Set([...used].flatMap((authenticator) => authenticator.withoutKeys()))],
        release: () => held.release(),
      }
    },
  }
}

interface AuthServersDeps {
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  readonly outbound: ObtainDeps['outbound']
  readonly series: NamedSeries
  readonly materials: Materials
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

/** Modules that only some configurations need: each takes 30 ms or more of a start, and 6 MiB. */
export interface LazyModules {
  /** Defined when the configuration has an authorization server. */
  readonly authServer: typeof authServerModule | undefined
  /** Defined when a route sends traces. */
  readonly telemetry: typeof telemetryModule | undefined
}

/** Loads what `config` needs of them. */
export async function loadModules({ authServers, routes }: ResolvedProxy): Promise<LazyModules> {
  const [authServer, telemetry] = await Promise.all([
    authServers.length > 0 ? import('../../authserver/index.ts') : undefined,
    routes.some((route) => route.telemetry !== undefined) ? import('../../telemetry/index.ts') : undefined,
  ])
  return { authServer, telemetry }
}
