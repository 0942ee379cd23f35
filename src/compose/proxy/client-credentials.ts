import type { Clock, Metrics } from '../../core/index.ts'
import { type ClientCredentialEnd, type ClientDeps, clientEnds } from '../../oauth/index.ts'
import { clientsOf, upstreamClient } from '../../resources/index.ts'
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
  const providers = new Map(
    routes.flatMap(({ callers }) =>
      callers.mode === 'anonymous' ? [] : callers.oauth.providers.map((one) => [JSON.stringify(one), one] as const),
    ),
  )
  const ofProviders = [...providers.values()].map(({ name, clientAuth }) => ({
    of: 'provider' as const,
    name,
    client: clientAuth,
  }))
  const ofUpstreams = authServers.flatMap(({ spec }) =>
    spec.upstreamProviders.map((provider) => ({
      of: 'upstream' as const,
      name: provider.name,
      client: upstreamClient(provider),
    })),
  )
  return [...ofConfigs, ...ofProviders, ...ofUpstreams].flatMap(({ of, name, client }) =>
    clientEnds(client, held).map(({ kind, label, endsAtMs, renewByMs }) => ({
      of,
      name,
      kind,
      label,
      endsAtMs,
      renewByMs,
    })),
  )
}

/** Those that should have been renewed by now. */
export const overdue = (ending: readonly EndingCredential[], clock: Clock): EndingCredential[] =>
  ending.filter(({ renewByMs }) => renewByMs <= clock.now())

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
