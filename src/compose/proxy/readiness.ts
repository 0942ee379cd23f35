import type { AuthServer } from '../../authserver/index.ts'
import type { ConnectionService } from '../../connections/index.ts'
import {
  asFailure,
  type Clock,
  headerSecretProblem,
  type Metrics,
  type SecretHandle,
  type Secrets,
} from '../../core/index.ts'
import { type CredentialExpiry, type ClientDeps, credentialExpiries } from '../../oauth/index.ts'
import type { Readiness } from '../../ops/index.ts'
import {
  authsOf,
  type AuthSection,
  type ClientAuth,
  clientsOf,
  filesNamedBy,
  forwardedSecrets,
  type ResolvedRoute,
  secretsNamedBy,
  upstreamClient,
} from '../../resources/index.ts'
import { isHeaderForm } from '../../fields/index.ts'
import type { ResolvedProxy } from '../../load/index.ts'
import type { UnreachableRemote } from './remote-watch.ts'

/** The open resources of a configuration that readiness inspects. */
export interface Resources {
  readonly clock: Clock
  readonly secrets: Secrets
  /** Content of a CA file; undefined until it has been readable once. */
  readonly certificate: (path: string) => () => Buffer | undefined
  /** Token in a file. Default path: the one in the environment. */
  readonly tokenFile: (path: string | undefined) => SecretHandle
  /** Names of identity providers whose keys were requested and never received. */
  readonly providersWithoutKeys: () => readonly string[]
  /** Warnings about the stores in use. */
  readonly storeRemarks?: () => readonly string[]
  /** The authorization servers of its routes. */
  readonly authServers?: readonly Pick<AuthServer, 'name' | 'readiness'>[]
  /** The connections that its routes use. */
  readonly connections?: Pick<ConnectionService, 'readiness' | 'disconnect' | 'list'> | undefined
}

interface Missing {
  /** The reason in the responses to callers of the route. */
  readonly reason: string
  /** Field path of the missing item below `spec`; never its name or location. */
  readonly field: string
}

/**
 * Ready unless draining or no route has all secrets and files that its type needs. Degraded: another route lacks one,
 * a certificate or token is due for renewal, provider keys were never received, a store evicts or lost data, or an
 * authorization server can't log users in. A restart would fix none of these, so they never make the process unready.
 * Problems of this replica alone are marked.
 */
export function readinessOf(
  config: ResolvedProxy,
  held: Resources,
  isDraining: boolean,
  unreachable?: readonly UnreachableRemote[],
): Readiness {
  if (isDraining) return { ok: false, detail: { draining: true } }
  if (config.routes.length === 0) return { ok: false, detail: 'no routes' }
  const unusable = config.routes.flatMap((route) => {
    const missing = missingOf(route, held)
    return missing === undefined ? [] : [{ route: route.name, ...missing }]
  })
  const ok = unusable.length < config.routes.length
  const providersWithoutKeys = held.providersWithoutKeys()
  const servers = (held.authServers ?? []).map(({ name, readiness }) => {
    const { isReady, remarks } = readiness()
    return { authServer: name, isReady, remarks }
  })
  const connections = held.connections?.readiness()
  const authServers = servers.filter(({ remarks }) => remarks.length > 0)
  const stores = [...new Set(held.storeRemarks?.() ?? [])]
  const expiring = expiringOf(endingCredentials(config, held), held.clock)
  const degraded =
    unusable.length + providersWithoutKeys.length + stores.length + expiring.length > 0 ||
    servers.some(({ isReady }) => !isReady) ||
    connections?.isReady === false
  const detail = {
    ...(config.revision === undefined ? {} : { revision: config.revision }),
    ...(unreachable === undefined ? {} : { unreachable }),
    ...(unusable.length === 0 ? {} : { unusable }),
    ...(providersWithoutKeys.length === 0 ? {} : { providersWithoutKeys }),
    ...(stores.length === 0 ? {} : { stores }),
    ...(expiring.length === 0 ? {} : { expiring }),
    ...(authServers.length === 0 ? {} : { authServers }),
    ...(connections === undefined || connections.remarks.length === 0 ? {} : { connections }),
  }
  return {
    ok,
    ...(degraded ? { degraded } : {}),
    ...(Object.keys(detail).length === 0 ? {} : { detail }),
  }
}

/** Later entries only verify: a rotation ends by removing one. */
const CURRENT_KEYS: ReadonlySet<string> = new Set(['hmacSecretRefs.0', 'signingKeySecretRefs.0'])

/** The first missing item without which a route fails every request, by the record of its type. */
function missingOf(
  { auth, authServer, headerForward }: ResolvedRoute,
  { secrets, certificate, tokenFile }: Resources,
): Missing | undefined {
  const { spec } = authServer?.server ?? {}
  const server = spec === undefined ? [] : secretsNamedBy({ type: 'embeddedAuthServer' as const, spec })
  const needed = server.filter(({ path }) => CURRENT_KEYS.has(path.join('.')))
  for (const { path, value, holds } of [...secretsNamedBy(auth), ...forwardedSecrets(headerForward), ...needed]) {
    try {
      const handle = secrets.handle(value, holds === 'bytes' ? 'bytes' : 'text')
      const secret = handle.current()
      const problem = isHeaderForm(holds) ? headerSecretProblem(secret.reveal(), holds) : undefined
      // An invalid value after a valid one: the valid one stays active.
      if (problem !== undefined && handle.version <= 1) return { reason: 'config_error', field: path.join('.') }
    } catch (error) {
      return { reason: asFailure(error).code, field: path.join('.') }
    }
  }
  const token = clientsOf(auth).find(
    (client) => client?.method === 'tokenFile' && tokenFile(client.tokenFile?.path).version === 0,
  )
  if (token !== undefined) return { reason: 'secret_unavailable', field: 'clientAuth.tokenFile' }
  const authorities = filesNamedBy(auth).filter(({ holds }) => holds === 'certificates')
  const file = authorities.find(({ value }) => certificate(value)() === undefined)
  return file === undefined ? undefined : { reason: 'config_error', field: file.path.join('.') }
}

/** A client credential at an authorization server, and its expiry. */
export interface EndingCredential extends CredentialExpiry {
  /** Owner of the credential. */
  readonly of: 'config' | 'provider' | 'upstream'
  readonly name: string
}

/** All expiring client credentials of a configuration, without duplicates. */
export function endingCredentials(
  { routes, authServers }: Pick<ResolvedProxy, 'routes' | 'authServers'>,
  held: Omit<ClientDeps, 'clock'>,
): EndingCredential[] {
  const auths = new Map(routes.flatMap(authsOf).map((auth) => [`${auth.namespace}/${auth.name}`, auth]))
  const ofConfigs = [...auths.values()].flatMap((auth) =>
    clientsOf(auth).map((client) => ({ of: 'config' as const, name: auth.name, client })),
  )
  const ofProviders = clientsOfSections(routes.map(({ callers }) => callers))
  const ofUpstreams = authServers.flatMap(({ spec }) =>
    spec.upstreamProviders.map((provider) => ({
      of: 'upstream' as const,
      name: provider.name,
      client: upstreamClient(provider),
    })),
  )
  return endsOf([...ofConfigs, ...ofProviders, ...ofUpstreams], held)
}

/** The expiring client credentials of the identity providers of one section. */
export const endingOfSection = (section: AuthSection, held: Omit<ClientDeps, 'clock'>): EndingCredential[] =>
  endsOf(clientsOfSections([section]), held)

interface NamedClient extends Pick<EndingCredential, 'of' | 'name'> {
  readonly client: ClientAuth | undefined
}

/** Distinct providers. */
function clientsOfSections(sections: readonly AuthSection[]): NamedClient[] {
  const providers = new Map(
    sections.flatMap((section) =>
      section.mode === 'anonymous' ? [] : section.oauth.providers.map((one) => [JSON.stringify(one), one] as const),
    ),
  )
  return [...providers.values()].map(({ name, clientAuth }) => ({ of: 'provider', name, client: clientAuth }))
}

const endsOf = (clients: readonly NamedClient[], held: Omit<ClientDeps, 'clock'>): EndingCredential[] =>
  clients.flatMap(({ of, name, client }) =>
    credentialExpiries(client, held).map(({ kind, label, endsAtMs, renewByMs }) => ({
      of,
      name,
      kind,
      label,
      endsAtMs,
      renewByMs,
    })),
  )

/** The credentials that are due for renewal, as readiness shows them. */
export const expiringOf = (ending: readonly EndingCredential[], clock: Clock): object[] =>
  ending
    .filter(({ renewByMs }) => renewByMs <= clock.now())
    .map(({ of, name, kind, endsAtMs }) => ({ [of]: name, kind, expires: new Date(endsAtMs).toISOString() }))

/**
 * Updates the gauge of client credential expiry; called on each scrape. Its series are removed with the connections
 * of their config, which have the same name.
 */
export function noteEnds(ending: readonly EndingCredential[], metrics: Metrics): void {
  const gauge = metrics.gauge(
    'extauth_client_credential_expires_seconds',
    'Expiry of client certificates and tokens used at authorization servers, in seconds since the epoch.',
    ['name', 'kind'],
    'min',
  )
  // A name may have several credentials (two clients of a config, one provider in two sections): the first expiry counts.
  for (const { name, kind, endsAtMs } of ending.toSorted((one, other) => other.endsAtMs - one.endsAtMs))
    gauge.with(name, kind).set(endsAtMs / 1_000)
}
