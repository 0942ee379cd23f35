import { createHash, timingSafeEqual } from 'node:crypto'
import { shapeOf, type UnverifiedJwt } from '../../oauth/index.ts'
import { OAuthError } from '../oauth-error.ts'
import type { TakeAssertion } from './assertion.ts'
import type { Client } from './client.ts'
import type { ClientDirectory } from './directory.ts'

/** The client authentication parameters of a form (RFC 6749 §2.3). */
export interface ClientForm {
  readonly client_id?: string | undefined
  readonly client_secret?: string | undefined
  readonly client_assertion?: string | undefined
  readonly client_assertion_type?: string | undefined
}

/**
 * Authenticates the client of a form with its one registered method (RFC 6749 §2.3, RFC 7523 §2.2). Throws
 * `OAuthError` `invalid_request` and `invalid_client`, and the errors of the directory and the store.
 */
export type AuthenticateClient = (form: ClientForm, authorization: string | undefined) => Promise<Client>

const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

export function createAuthenticateClient(clients: ClientDirectory, takeAssertion: TakeAssertion): AuthenticateClient {
  return async (form, authorization) => {
    const shown = shownBy(form, authorization)
    const { id } = shown
    if (id === undefined) throw invalid('client_id is missing')
    if (form.client_id !== undefined && form.client_id !== id)
      throw invalid('client_id differs from the authenticated client')
    const client = await find(clients, id)
    switch (client.authMethod) {
      case 'none':
        if (shown.kind !== 'nothing') throw refused('the client is public and must not authenticate')
        break
      case 'client_secret_basic':
      case 'client_secret_post':
        if (shown.kind !== 'secret') throw refused('the client secret is missing')
        if (!isSecretOf(client, shown.secret)) throw refused('the client secret is wrong')
        break
      case 'private_key_jwt':
        if (shown.kind !== 'assertion') throw refused('the client assertion is missing')
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

/** The presented credentials, unverified. More than one method is rejected (RFC 6749 §2.3). */
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
  if (shape.kind !== 'jwt') throw invalid('client_assertion is not a JWT')
  if (type !== ASSERTION_TYPE) throw invalid(`client_assertion_type is not ${ASSERTION_TYPE}`)
  const { sub } = shape.jwt.payload
  if (typeof sub !== 'string' || sub === '') throw refused('sub of the assertion is missing')
  return { kind: 'assertion', id: sub, assertion, jwt: shape.jwt }
}

/**
 * RFC 6749 §2.3.1: both parts are form-encoded before they become user and password. Another scheme is an unsupported
 * method; an empty secret is a wrong one (§5.2).
 */
function readBasic(authorization: string): { readonly id: string; readonly secret: string } {
  if (!/^basic(?: |$)/i.test(authorization)) throw refused('the scheme of the Authorization header is not Basic')
  const [, encoded = ''] = /^basic ([A-Za-z0-9+/]+={0,2})$/i.exec(authorization) ?? []
  const bytes = Buffer.from(encoded, 'base64')
  const isEncoded = encoded !== '' && bytes.toString('base64').replace(/=+$/, '') === encoded.replace(/=+$/, '')
  const [, id, secret] = (isEncoded && /^([^:]+):(.*)$/s.exec(bytes.toString('utf8'))) || []
  if (id === undefined || secret === undefined)
    throw invalid('the Basic Authorization header needs a client id and a secret')
  try {
    return { id: formDecoded(id), secret: formDecoded(secret) }
  } catch {
    throw invalid('the client id and secret in the Authorization header are not form-encoded')
  }
}

const formDecoded = (text: string): string => decodeURIComponent(text.replaceAll('+', '%20'))

async function find(clients: ClientDirectory, id: string): Promise<Client> {
  try {
    const client = await clients.find(id)
    if (client !== undefined) return client
  } catch (error) {
    // Any defect of a metadata document means here that the client is unknown.
    throw error instanceof OAuthError ? refused(error.description) : error
  }
  throw refused('unknown client')
}

function isSecretOf({ secretHash = '' }: Client, given: string): boolean {
  const expected = Buffer.from(secretHash)
  const hashed = Buffer.from(createHash('sha256').update(given).digest('base64url'))
  return expected.length === hashed.length && timingSafeEqual(expected, hashed)
}
