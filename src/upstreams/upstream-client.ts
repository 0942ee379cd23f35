import type { Clock, SecretHandle, Secrets } from '../core/index.ts'
import type { SecretRef } from '../fields/index.ts'
import { createClientAuthentication, type OAuthClient } from '../oauth/index.ts'

/** Us at an upstream, as one client that it knows. */
export interface KnownClient {
  readonly clientId: string
  /** How it shows who it is; `secretInBody` where the endpoint takes id and secret in the body only. */
  authentication(secretInBody: boolean): OAuthClient
}

/** Us, as a client of the upstream's. */
export interface UpstreamClient {
  /** Who we are there. Throws what keeps us from being anybody. */
  current(): Promise<KnownClient>
  /** The upstream does not know us as this client. Absent: nothing can be done about it here. */
  refused?(client: KnownClient): Promise<void>
}

/** HTTP Basic with id and secret, both in the body where only that is on offer, or the id alone without a secret. */
export function clientWithSecret(clientId: string, secret: SecretHandle | undefined, clock: Clock): KnownClient {
  const clientWith = (method: 'clientSecretBasic' | 'clientSecretPost') =>
    createClientAuthentication(
      secret === undefined ? { method: 'none', clientId } : { method, clientId, secret },
      clock,
    )
  const [basic, inBody] = [clientWith('clientSecretBasic'), clientWith('clientSecretPost')]
  return { clientId, authentication: (secretInBody) => (secretInBody ? inBody : basic) }
}

/** The client that a configuration names. */
export function createConfiguredClient(
  config: { readonly clientId: string; readonly clientSecretRef?: SecretRef | undefined },
  { clock, secrets }: { readonly clock: Clock; readonly secrets: Secrets },
): UpstreamClient {
  const { clientId, clientSecretRef } = config
  const secret = clientSecretRef === undefined ? undefined : secrets.handle(clientSecretRef)
  const client = clientWithSecret(clientId, secret, clock)
  return { current: () => Promise.resolve(client) }
}
