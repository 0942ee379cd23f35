import type { Clock, SecretHandle } from '../core/index.ts'
import { type ClientDeps, createClientAuthentication, type OAuthClient, openClient } from '../oauth/index.ts'
import { type FlatClient, namedClient } from '../resources/index.ts'

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

/** The client that a configuration names. */
export interface ConfiguredClient extends UpstreamClient {
  readonly clientId: string
  /** What it shows in TLS; undefined where it shows nothing. */
  readonly certificate: ShownCertificate | undefined
}

/** A certificate for the endpoints at which we are a client (RFC 8705 §2). */
export interface ShownCertificate {
  readonly current: NonNullable<OAuthClient['certificate']>
  /** Names it: with another one an endpoint can fail where others reach it. */
  readonly label: string
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

/**
 * The client that the configuration of the upstream `name` says. Flat fields don't say how a secret is shown, so that metadata may;
 * the record does, and no other method is tried. Throws `config_error`.
 */
export function createConfiguredClient(name: string, config: FlatClient, deps: ClientDeps): ConfiguredClient {
  const auth = namedClient(name, config)
  const { clientId, tls } = auth
  const told = openClient(auth, deps)
  const isBasic = config.clientAuth === undefined && auth.method === 'clientSecretBasic'
  const inBody = isBasic ? openClient({ ...auth, method: 'clientSecretPost' }, deps) : told
  const known: KnownClient = { clientId, authentication: (secretInBody) => (secretInBody ? inBody : told) }
  const ref = tls?.certificateSecretRef
  const certificate =
    told.certificate === undefined || ref === undefined
      ? undefined
      : { current: told.certificate, label: `${ref.name}/${ref.key}` }
  return { clientId, certificate, current: () => Promise.resolve(known) }
}
