import type { Clock, SecretHandle } from '../core/index.ts'
import { type ClientDeps, createClientAuthentication, type OAuthClient, openClient } from '../oauth/index.ts'
import { type FlatClient, namedClient } from '../resources/index.ts'

/** The proxy's OAuth client identity at an upstream. */
export interface KnownClient {
  readonly clientId: string
  /** Its client authentication; `secretInBody` when the endpoint accepts id and secret in the body only. */
  authentication(secretInBody: boolean): OAuthClient
}

/** The OAuth client identity at an upstream, configured or registered. */
export interface UpstreamClient {
  /** The current client identity. Throws when there is none. */
  current(): Promise<KnownClient>
  /** Reports that the upstream does not know this client. Absent: no remedy here. */
  refused?(client: KnownClient): Promise<void>
}

/** The client identity from the configuration. */
export interface ConfiguredClient extends UpstreamClient {
  readonly clientId: string
  /** Its TLS client certificate; undefined without one. */
  readonly certificate: ShownCertificate | undefined
}

/** A certificate for endpoints with client authentication (RFC 8705 §2). */
export interface ShownCertificate {
  readonly current: NonNullable<OAuthClient['certificate']>
  /** Identifies the client: failures at an endpoint are counted per client. */
  readonly label: string
}

/** HTTP Basic with id and secret, both in the body if only that is supported, or the id alone without a secret. */
export function clientWithSecret(clientId: string, secret: SecretHandle | undefined, clock: Clock): KnownClient {
  const clientWith = (method: 'clientSecretBasic' | 'clientSecretPost') =>
    createClientAuthentication(
      secret === undefined ? { method: 'none', clientId } : { method, clientId, secret },
      clock,
    )
  const [basic, inBody] = [clientWith('clientSecretBasic'), clientWith('clientSecretPost')]
  return { clientId, authentication: (secretInBody) => (secretInBody ? inBody : basic) }
}

/**
 * The client identity of the upstream `name`. Top-level fields leave the authentication method to the metadata; with
 * `clientAuth` no other method is tried. Throws `config_error`.
 */
export function createConfiguredClient(name: string, config: FlatClient, deps: ClientDeps): ConfiguredClient {
  const auth = namedClient(name, config)
  const { clientId, tls } = auth
  const opened = openClient(auth, deps)
  const isBasic = config.clientAuth === undefined && auth.method === 'clientSecretBasic'
  const inBody = isBasic ? openClient({ ...auth, method: 'clientSecretPost' }, deps) : opened
  const known: KnownClient = { clientId, authentication: (secretInBody) => (secretInBody ? inBody : opened) }
  const ref = tls?.certificateSecretRef
  const certificate =
    opened.certificate === undefined || ref === undefined
      ? undefined
      : { current: opened.certificate, label: `${ref.name}/${ref.key}` }
  return { clientId, certificate, current: () => Promise.resolve(known) }
}
