import { createHash, timingSafeEqual } from 'node:crypto'
import { shapeOf, type UnverifiedJwt } from '../../oauth/index.ts'
import { OAuthError } from '../oauth-error.ts'
import type { TakeAssertion } from './assertion.ts'
import type { Client } from './client.ts'
import type { ClientDirectory } from './directory.ts'

/** What a client says of itself in a form that it posts (RFC 6749 §2.3). */
export interface ClientForm {
  readonly client_id?: string | undefined
  readonly client_secret?: string | undefined
  readonly client_assertion?: string | undefined
  readonly client_assertion_type?: string | undefined
}

/**
 * The client that sent a form, by the one method that it registered (RFC 6749 §2.3, RFC 7523 §2.2). Throws `OAuthError`
 * `invalid_request` and `invalid_client`, and what the directory and the store throw.
 */
export type AuthenticateClient = (form: ClientForm, authorization: string | undefined) => Promise<Client>

const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

export function createAuthenticateClient(clients: ClientDirectory, takeAssertion: TakeAssertion): AuthenticateClient {
  return async (form, authorization) => {
    const shown = shownBy(form, authorization)
    const { id } = shown
    if (id === undefined) throw invalid('client_id is missing')
    if (form.client_id !== undefined && form.client_id !== id)
      throw invalid('client_id is not the client that is shown')
    const client = await find(clients, id)
    switch (client.authMethod) {
      case 'none':
        if (shown.kind !== 'nothing') throw refused('the client has no secret and no key')
        break
      case 'client_secret_basic':
      case 'client_secret_post':
        if (shown.kind !== 'secret') throw refused('the secret of the client is missing')
        if (!isSecretOf(client, shown.secret)) throw refused('the secret is not that of the client')
        break
      case 'private_key_jwt':
        if (shown.kind !== 'assertion') throw refused('the assertion of the client is missing')
        await takeAssertion(client, shown.assertion, shown.jwt)
    }
    return client
  }
}

type Shown =
  | { readonly kind: 'nothing'; readonly id: string | undefined }
  | { readonly kind: 'secret'; readonly id: string | undefined; readonly secret: string }
  | { readonly kind: 'assertion'; readonly id: string; readonly assertion: string; readonly jwt: UnverifiedJwt }

const invalid = (why: string): OAuthError => new OAuthError('invalid_request', why)
const refused = (why: string): OAuthError => new OAuthError('invalid_client', why)

/** What is shown, nothing of it verified. More than one method is refused (RFC 6749 §2.3). */
function shownBy(form: ClientForm, authorization: string | undefined): Shown {
  const { client_id: id, client_secret: secret, client_assertion: assertion } = form
  if ([authorization, secret, assertion].filter((one) => one !== undefined).length > 1)
    throw invalid('the client authenticates in more than one way')
  if (authorization !== undefined) return { kind: 'secret', ...readBasic(authorization) }
  if (secret !== undefined) return { kind: 'secret', id, secret }
  return assertion === undefined ? { kind: 'nothing', id } : readAssertion(assertion, form.client_assertion_type)
}

function readAssertion(assertion: string, type: string | undefined): Shown {
  const shape = shapeOf(assertion)
  if (shape.kind !== 'jwt') throw invalid('client_assertion is no JWT')
  if (type !== ASSERTION_TYPE) throw invalid(`client_assertion_type is not ${ASSERTION_TYPE}`)
  const { sub } = shape.jwt.payload
  if (typeof sub !== 'string' || sub === '') throw refused('sub of the assertion is missing')
  return { kind: 'assertion', id: sub, assertion, jwt: shape.jwt }
}

/**
 * RFC 6749 §2.3.1: both parts are encoded as in forms before they become a user and a password. Another scheme is a way to
 * authenticate that we don't have, and an empty secret a wrong one (§5.2).
 */
function readBasic(authorization: string): { readonly id: string; readonly secret: string } {
  if (!/^basic(?: |$)/i.test(authorization)) throw refused('the scheme of the Authorization header is not Basic')
  const [, encoded = ''] = /^basic ([A-Za-z0-9+/]+={0,2})$/i.exec(authorization) ?? []
  const bytes = Buffer.from(encoded, 'base64')
  const isEncoded = encoded !== '' && bytes.toString('base64').replace(/=+$/, '') === encoded.replace(/=+$/, '')
  const [, id, secret] = (isEncoded && /^([^:]+):(.*)$/s.exec(bytes.toString('utf8'))) || []
  if (id === undefined || secret === undefined) throw invalid('the Authorization header is not Basic with both parts')
  try {
    return { id: formDecoded(id), secret: formDecoded(secret) }
  } catch {
    throw invalid('the parts of the Authorization header are not encoded as in forms')
  }
}

const formDecoded = (text: string): string => decodeURIComponent(text.replaceAll('+', '%20'))

async function find(clients: ClientDirectory, id: string): Promise<Client> {
  try {
    const client = await clients.find(id)
    if (client !== undefined) return client
  } catch (error) {
    // Whatever is wrong with a metadata document, here it means that the client is not known.
    throw error instanceof OAuthError ? refused(error.description) : error
  }
  throw refused('the client is not known')
}

function isSecretOf({ secretHash = '' }: Client, given: string): boolean {
  const expected = Buffer.from(secretHash)
  const hashed = Buffer.from(createHash('sha256').update(given).digest('base64url'))
  return expected.length === hashed.length && timingSafeEqual(expected, hashed)
}
