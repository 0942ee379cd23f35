import { Failure, type Clock, type SecretHandle } from '../core/index.ts'
import { createClientAssertion } from './client-assertion.ts'
import { basicCredentials } from './form-post.ts'

/** RFC 6749 §2.3.1, RFC 7523 §2.2, in the words of RFC 7591 §2. */
export type ClientAuthMethod = 'client_secret_basic' | 'client_secret_post' | 'private_key_jwt'

/** What authenticating the client adds to a token request. */
export interface ClientAuthentication {
  readonly form: readonly (readonly [name: string, value: string])[]
  readonly headers: Readonly<Record<string, string>>
}

export interface ClientSettings {
  readonly clientId: string | undefined
  /** The client secret, or the private key for `private_key_jwt`. */
  readonly secret: SecretHandle | undefined
  /** Only meaningful with a secret. */
  readonly method: ClientAuthMethod
  readonly clock: Clock
}

const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

/**
 * How one client authenticates at a token endpoint: HTTP Basic with id and secret (RFC 6749 §2.3.1), both in the body,
 * a signed assertion (RFC 7523 §2.2), or without a secret `client_id` in the body (a public client), or nothing at all.
 * The function it gives takes the URL of the endpoint, reads the secret each time, and throws `secret_unavailable` and
 * `config_error`.
 */
export function createClientAuthentication(
  settings: ClientSettings,
): (endpointUrl: string) => Promise<ClientAuthentication> {
  const { clientId, secret, method, clock } = settings
  if (secret === undefined) {
    if (method === 'private_key_jwt') throw new Failure('config_error', { detail: 'private_key_jwt needs a key' })
    const fixed = { form: clientId === undefined ? [] : [['client_id', clientId] as const], headers: {} }
    return () => Promise.resolve(fixed)
  }
  if (clientId === undefined) throw new Failure('config_error', { detail: 'a client secret needs a clientId' })
  const id = ['client_id', clientId] as const
  if (method === 'client_secret_basic') {
    return async () => ({ form: [], headers: { authorization: basicCredentials(clientId, secret.current()) } })
  }
  if (method === 'client_secret_post') {
    return async () => ({ form: [id, ['client_secret', secret.current().reveal()]], headers: {} })
  }
  const assertion = createClientAssertion(clientId, secret, clock)
  return async (endpointUrl) => ({
    form: [id, ['client_assertion_type', ASSERTION_TYPE], ['client_assertion', await assertion(endpointUrl)]],
    headers: {},
  })
}
