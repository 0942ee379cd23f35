import type { AuthServer } from '../../authserver/index.ts'
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

/** What a configuration has opened, as far as readiness looks at it. */
export interface Resources {
  readonly clock: Clock
  readonly secrets: Secrets
  /** The content of a CA file; undefined while it has never been readable. */
  readonly certificate: (path: string) => () => Buffer | undefined
  /** The token in a file; undefined: the file that the environment names. */
  readonly tokenFile: (path: string | undefined) => SecretHandle
  /** Names of identity providers whose keys were asked for and never came. */
  readonly providersWithoutKeys: () => readonly string[]
  /** What should be otherwise with the stores that it uses. */
  readonly storeRemarks?: () => readonly string[]
  /** Where callers of its routes log in. */
  readonly authServers?: readonly Pick<AuthServer, 'name' | 'readiness'>[]
}

interface Missing {
  /** The reason that callers of the route are answered with. */
  readonly reason: string
  /** Where the config names what is missing, below its `spec`; never what it is called or where it lies. */
  readonly field: string
}

/**
 * Ready as long as it does not drain and at least one route has all the secrets and files that its type names; degraded
 * while another lacks one, while a certificate or token of ours should have been renewed, while the keys of an identity provider never came, while a store evicts or has lost what was in it,
 * and while nobody can log in at an authorization server; none of these makes it unready: restarting this process would
 * not mend it. What holds for one replica only is said.
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
  const authServers = servers.filter(({ remarks }) => remarks.length > 0)
  const stores = [...new Set(held.storeRemarks?.() ?? [])]
  const expiring = expiringOf(endingCredentials(config, held), held.clock)
  const degraded =
    unusable.length + providersWithoutKeys.length + stores.length + expiring.length > 0 ||
    servers.some(({ isReady }) => !isReady)
  const detail = {
    ...(config.revision === undefined ? {} : { revision: config.revision }),
    ...(unreachable === undefined ? {} : { unreachable }),
    ...(unusable.length === 0 ? {} : { unusable }),
    ...(providersWithoutKeys.length === 0 ? {} : { providersWithoutKeys }),
    ...(stores.length === 0 ? {} : { stores }),
    ...(expiring.length === 0 ? {} : { expiring }),
    ...(authServers.length === 0 ? {} : { authServers }),
  }
  return {
    ok,
    ...(degraded ? { degraded } : {}),
    ...(Object.keys(detail).length === 0 ? {} : { detail }),
  }
}

/** Later entries only verify what was issued before: taking one away is how a rotation ends. */
const CURRENT_KEYS: ReadonlySet<string> = new Set(['hmacSecretRefs.0', 'signingKeySecretRefs.0'])

/** The first thing without which a route can answer nothing but 500, by the record of its type. */
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
      // After a value that could be used, that one stays in force.
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

/** What a config authenticates with at authorization servers, and when it ends. */
export interface EndingCredential extends CredentialExpiry {
  /** Whose it is. */
  readonly of: 'config' | 'provider' | 'upstream'
  readonly name: string
}

/** Everything with an end that a configuration authenticates with at authorization servers, each once. */
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

/** The same for the identity providers of one section. */
export const endingOfSection = (section: AuthSection, held: Omit<ClientDeps, 'clock'>): EndingCredential[] =>
  endsOf(clientsOfSections([section]), held)

interface NamedClient extends Pick<EndingCredential, 'of' | 'name'> {
  readonly client: ClientAuth | undefined
}

/** Each different provider once. */
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

/** Those that should have been renewed by now, as readiness shows them. */
export const expiringOf = (ending: readonly EndingCredential[], clock: Clock): object[] =>
  ending
    .filter(({ renewByMs }) => renewByMs <= clock.now())
    .map(({ of, name, kind, endsAtMs }) => ({ [of]: name, kind, expires: new Date(endsAtMs).toISOString() }))

/**
 * Keeps the gauge of when client credentials end; called when somebody asks for the figures. Its series go with the connections
 * of their config, which have the same name.
 */
export function noteEnds(ending: readonly EndingCredential[], metrics: Metrics): void {
  const gauge = metrics.gauge(
    'extauth_client_credential_expires_seconds',
    'When a certificate or token that the proxy authenticates with at an authorization server ends, in seconds since the epoch.',
    ['name', 'kind'],
    'min',
  )
  // One name may have several: two clients of a config, or one provider of two sections or servers. The first end is told.
  for (const { name, kind, endsAtMs } of ending.toSorted((one, other) => other.endsAtMs - one.endsAtMs))
    gauge.with(name, kind).set(endsAtMs / 1_000)
}
