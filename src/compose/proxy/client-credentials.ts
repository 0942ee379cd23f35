import type { Clock, Metrics } from '../../core/index.ts'
import { type ClientCredentialEnd, type ClientDeps, clientEnds } from '../../oauth/index.ts'
import { clientsOf } from '../../resources/index.ts'
import type { ResolvedProxy } from '../../load/index.ts'

/** What a config authenticates with at authorization servers, and when it ends. */
export interface EndingCredential extends ClientCredentialEnd {
  /** Name of the config. */
  readonly config: string
}

/** Everything with an end that the routes of a configuration authenticate with, each once. */
export function endingCredentials(
  { routes }: Pick<ResolvedProxy, 'routes'>,
  held: Omit<ClientDeps, 'clock'>,
): EndingCredential[] {
  const auths = new Map(routes.map(({ auth }) => [`${auth.namespace}/${auth.name}`, auth]))
  const ending: EndingCredential[] = []
  for (const auth of auths.values()) {
    for (const client of clientsOf(auth)) {
      for (const end of clientEnds(client, held)) ending.push({ config: auth.name, ...end })
    }
  }
  return ending
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
  for (const { config, kind, endsAtMs } of ending) gauge.with(config, kind).set(endsAtMs / 1_000)
}
