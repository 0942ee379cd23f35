import type { Clock, Metrics } from '../../core/index.ts'
import { type ClientCredentialEnd, type ClientDeps, clientEnds } from '../../oauth/index.ts'
import { type AuthSection, type ClientAuth, clientsOf, upstreamClient } from '../../resources/index.ts'
import type { ResolvedProxy } from '../../load/index.ts'

/** What a config authenticates with at authorization servers, and when it ends. */
export interface EndingCredential extends ClientCredentialEnd {
  /** Whose it is. */
  readonly of: 'config' | 'provider' | 'upstream'
  readonly name: string
}

/** Everything with an end that a configuration authenticates with at authorization servers, each once. */
export function endingCredentials(
  { routes, authServers }: Pick<ResolvedProxy, 'routes' | 'authServers'>,
  held: Omit<ClientDeps, 'clock'>,
): EndingCredential[] {
  const auths = new Map(routes.map(({ auth }) => [`${auth.namespace}/${auth.name}`, auth]))
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
    clientEnds(client, held).map(({ kind, label, endsAtMs, renewByMs }) => ({
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
