import { type Clock, Failure, type SecretHandle, type Secrets } from '../core/index.ts'
import type { ClientAuth } from '../resources/index.ts'
import { createClientAuthentication } from './client-authentication.ts'
import type { ClientSettings, OAuthClient } from './client-settings.ts'

/** Sources of client credentials. */
export interface ClientDeps {
  readonly clock: Clock
  readonly secrets: Pick<Secrets, 'handle'>
  /** The token in a file, kept current; undefined: the file that the environment names. */
  readonly tokenFile: (path: string | undefined) => SecretHandle
}

const incomplete = (method: string): Failure =>
  new Failure('config_error', { detail: `clientAuth with method ${method} has no credential` })

/** Resolves `clientAuth` to secret handles. Throws `config_error`. */
function settingsOf(auth: ClientAuth, { secrets, tokenFile }: ClientDeps): ClientSettings {
  const { method, clientId, secretRef, key, tls, assertionAudience: audience } = auth
  if (method === 'tokenFile') {
    const { path, type } = auth.tokenFile ?? { path: undefined, type: 'jwt-bearer' }
    return { method, clientId, token: tokenFile(path), type }
  }
  if (clientId === undefined) throw incomplete(method)
  switch (method) {
    case 'none':
      return { method, clientId }
    case 'privateKeyJwt': {
      if (key === undefined) throw incomplete(method)
      const { certificateSecretRef, secretRef: keyRef, ...fields } = key
      const certificate = certificateSecretRef === undefined ? undefined : secrets.handle(certificateSecretRef)
      return { method, clientId, audience, key: { ...fields, secret: secrets.handle(keyRef), certificate } }
    }
    case 'tlsClient':
      if (tls === undefined) throw incomplete(method)
      return {
        method,
        clientId,
        certificate: secrets.handle(tls.certificateSecretRef),
        key: secrets.handle(tls.keySecretRef),
      }
    default:
      if (secretRef === undefined) throw incomplete(method)
      return { method, clientId, secret: secrets.handle(secretRef) }
  }
}

/** Opens the client of a `clientAuth`; without one, an unauthenticated client. Throws `config_error`. */
export const openClient = (auth: ClientAuth | undefined, deps: ClientDeps): OAuthClient =>
  createClientAuthentication(
    auth === undefined ? { method: 'none', clientId: undefined } : settingsOf(auth, deps),
    deps.clock,
  )
