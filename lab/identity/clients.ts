import { randomBytes, randomUUID } from 'node:crypto'
import { Secret } from '../../src/core/index.ts'
import { type Form, OAuthRefusal } from './oauth-error.ts'

export type ClientRight = 'introspect' | 'exchange' | 'client_credentials' | 'authorization_code' | 'on_behalf_of'

/** An OAuth client of the lab's identity provider. */
export interface LabClient {
  readonly id: string
  /** Absent for a public client. */
  readonly secret?: Secret
  readonly may: readonly ClientRight[]
  /** Audiences that it may ask tokens for. */
  readonly audiences?: readonly string[]
  /** How long the tokens live that it gets for itself. Default 3600. */
  readonly tokenSeconds?: number
  readonly redirectUris?: readonly string[]
  /** Authorization servers that it gets identity assertions for, and who it is there. */
  readonly assertsTo?: readonly { readonly audience: string; readonly clientId: string }[]
}

export interface Clients {
  find(id: string): LabClient | undefined
  /** RFC 7591: checks the metadata and keeps the client. Throws `invalid_client_metadata`, `invalid_redirect_uri`. */
  register(metadata: unknown): { readonly client: LabClient; readonly method: string }
  /**
   * The client of a request to the token or introspection endpoint: Basic (RFC 6749 §2.3.1, form-encoded) or in the
   * body, never both; secrets are compared in constant time. Throws `invalid_client` (401).
   */
  authenticate(authorization: string | undefined, form: Form): LabClient
}

const MAX_CLIENTS = 1000

/** The clients known from the start, and those that register themselves. */
export function createClients(known: readonly LabClient[]): Clients {
  const clients = new Map(known.map((client) => [client.id, client]))
  return {
    find: (id) => clients.get(id),
    register(metadata) {
      const { redirectUris, method } = checkMetadata(metadata)
      if (clients.size >= MAX_CLIENTS) throw new OAuthRefusal('invalid_client_metadata', 'too many clients')
      const client: LabClient = {
        id: `lab-${randomUUID()}`,
        ...(method === 'none' ? {} : { secret: new Secret(randomBytes(32).toString('base64url')) }),
        may: ['authorization_code'],
        redirectUris,
      }
      clients.set(client.id, client)
      return { client, method }
    },
    authenticate(authorization, form) {
      const basic = authorization === undefined ? undefined : parseBasic(authorization)
      if (basic !== undefined && form.get('client_secret') !== undefined) {
        throw new OAuthRefusal('invalid_request', 'more than one client authentication method')
      }
      const id = basic?.id ?? form.get('client_id')
      const secret = basic?.secret ?? form.get('client_secret')
      if (basic !== undefined && form.get('client_id') !== undefined && form.get('client_id') !== basic.id) {
        throw new OAuthRefusal('invalid_request', 'client_id differs from the authenticated client')
      }
      const client = id === undefined ? undefined : clients.get(id)
      // An unknown client costs the same comparison as a known one.
      const expected = client === undefined ? new Secret(randomUUID()) : client.secret
      const secretFits = expected === undefined ? secret === undefined : expected.equals(secret ?? '')
      if (client === undefined || !secretFits) throw invalidClient()
      return client
    },
  }
}

const invalidClient = () =>
  new OAuthRefusal('invalid_client', 'client authentication failed', {
    status: 401,
    headers: { 'www-authenticate': 'Basic realm="extauth-lab"' },
  })

function parseBasic(authorization: string): { id: string; secret: string } {
  const encoded = /^Basic ([A-Za-z0-9+/]+={0,2})$/i.exec(authorization)?.[1]
  const [id, secret] = encoded === undefined ? [] : splitOnce(Buffer.from(encoded, 'base64').toString('utf8'))
  if (id === undefined || secret === undefined) throw invalidClient()
  try {
    return { id: formDecode(id), secret: formDecode(secret) }
  } catch {
    throw invalidClient()
  }
}

function splitOnce(text: string): [string, string] | [] {
  const at = text.indexOf(':')
  return at < 0 ? [] : [text.slice(0, at), text.slice(at + 1)]
}

const formDecode = (text: string) => decodeURIComponent(text.replaceAll('+', ' '))

const METHODS = new Set(['none', 'client_secret_basic', 'client_secret_post'])

function checkMetadata(metadata: unknown): { redirectUris: string[]; method: string } {
  const { redirect_uris: uris, token_endpoint_auth_method: method = 'client_secret_basic' } = (metadata ?? {}) as {
    redirect_uris?: unknown
    token_endpoint_auth_method?: unknown
  }
  if (!Array.isArray(uris) || uris.length === 0 || uris.length > 10 || !uris.every(isRedirectUri)) {
    throw new OAuthRefusal('invalid_redirect_uri', 'redirect_uris must be https, loopback http or an own scheme')
  }
  if (typeof method !== 'string' || !METHODS.has(method)) {
    throw new OAuthRefusal('invalid_client_metadata', 'token_endpoint_auth_method is not supported')
  }
  return { redirectUris: uris, method }
}

function isRedirectUri(uri: unknown): uri is string {
  if (typeof uri !== 'string' || uri.length > 2000 || !URL.canParse(uri)) return false
  const { protocol, hostname, hash } = new URL(uri)
  if (hash !== '' || ['javascript:', 'data:', 'file:', 'vbscript:'].includes(protocol)) return false
  return protocol !== 'http:' || isLoopback(hostname)
}

const isLoopback = (hostname: string) => ['127.0.0.1', 'localhost', '[::1]'].includes(hostname)

/** Whether `uri` is registered: equal, or on loopback equal but for the port (RFC 8252 §7.3). */
export function isRegisteredRedirect(client: Pick<LabClient, 'redirectUris'>, uri: string): boolean {
  if (client.redirectUris?.includes(uri) === true) return true
  if (!URL.canParse(uri) || !isLoopback(new URL(uri).hostname)) return false
  const withoutPort = (text: string) => Object.assign(new URL(text), { port: '' }).href
  return client.redirectUris?.some((known) => URL.canParse(known) && withoutPort(known) === withoutPort(uri)) ?? false
}
