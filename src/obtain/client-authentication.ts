import { Failure, type Clock, type SecretHandle } from '../core/index.ts'
import { basicCredentials } from '../net/index.ts'
import type { TokenExchange } from '../resources/index.ts'
import { createClientAssertion } from './client-assertion.ts'

type Method = TokenExchange['clientAuthMethod']

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
  readonly method: Method
  readonly tokenUrl: string
  readonly clock: Clock
}

const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

/**
 * How one client authenticates at one token endpoint: HTTP Basic with id and secret (RFC 6749 §2.3.1), both in the body,
 * a signed assertion (RFC 7523 §2.2), or without a secret `client_id` in the body (a public client), or nothing at all.
 * The function it gives reads the secret each time; it throws `secret_unavailable` and `config_error`.
 */
export function createClientAuthentication(settings: ClientSettings): () => Promise<ClientAuthentication> {
  const { clientId, secret, method, tokenUrl, clock } = settings
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
  const assertion = createClientAssertion(clientId, tokenUrl, secret, clock)
  return async () => ({
    form: [id, ['client_assertion_type', ASSERTION_TYPE], ['client_assertion', await assertion()]],
    headers: {},
  })
}
