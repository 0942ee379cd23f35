import * as oauth from 'oauth4webapi'
import { CredentialRefusal, type Outbound } from '../core/index.ts'
import { type Asked, discover } from './discovery.ts'
import { openReceiver } from './receiver.ts'
import { callOptions, isSafeUrl, loginRefusal } from './server-calls.ts'
import type { LoginRecord } from './store.ts'

/** A client that the authorization server knows already, or that has a document of its own. */
export interface KnownClient {
  readonly id: string
  readonly secret?: string | undefined
}

export interface LoginOptions {
  /** The MCP server. */
  readonly endpoint: URL
  readonly outbound: Outbound
  /** Registered beforehand. Default: a metadata document, else registration. */
  readonly client?: KnownClient | undefined
  /** URL of a client ID metadata document, used where the authorization server takes such. */
  readonly clientMetadataUrl?: string | undefined
  /** Shows the address to a person in front of a browser. */
  readonly openBrowser: (url: string) => void
  readonly now: () => number
  /** Milliseconds that the person may take. */
  readonly patienceMs: number
  /** Nobody waits for the login any more. */
  readonly signal?: AbortSignal | undefined
}

type Server = oauth.AuthorizationServer
type Client = LoginRecord['client']

/**
 * Logs a person in for an MCP server, from its challenge to tokens (MCP authorization): discovery, a client, the browser
 * with PKCE, `state` and `resource`, the code on a loopback port, the check of `iss`. `before` is the login that is being
 * replaced. Throws `CredentialRefusal` login_failed.
 */
export async function logIn(
  asked: Asked,
  before: LoginRecord | undefined,
  options: LoginOptions,
): Promise<LoginRecord> {
  const { endpoint, outbound, now } = options
  const { resource, server, scopes } = await discover(endpoint, asked, outbound)
  const isSame = before?.issuer === server.issuer && before.resource === resource
  const state = oauth.generateRandomState()
  const receiver = await openReceiver({
    patienceMs: options.patienceMs,
    signal: options.signal,
    accepts: (answer) => answer.get('state') === state,
    port: isSame ? Number(new URL(before.client.redirect_uri).port) : undefined,
  }).catch((error: unknown) => {
    throw loginRefusal('no port on 127.0.0.1 can be listened on', error)
  })
  try {
    const client = await clientFor(server, receiver.url, isSame ? before.client : undefined, options)
    const verifier = oauth.generateRandomCodeVerifier()
    const wanted = scopesFor(server, isSame ? [...(before.scope?.split(' ') ?? []), ...scopes] : scopes)
    const url = new URL(server.authorization_endpoint ?? '')
    const parameters = {
      response_type: 'code',
      client_id: client.client_id,
      redirect_uri: client.redirect_uri,
      state,
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      resource,
      ...(wanted.length === 0 ? {} : { scope: wanted.join(' ') }),
      ...(wanted.includes('offline_access') ? { prompt: 'consent' } : {}),
    }
    for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
    options.openBrowser(url.href)
    const answer = await receiver.answer.catch(() => {
      throw loginRefusal('nobody came back from the browser in time')
    })
    const tokens = await redeem(server, client, { answer, state, verifier, resource }, outbound)
    return recordOf({ endpoint, resource, server, client, scopes: wanted }, tokens, now())
  } catch (error) {
    if (error instanceof CredentialRefusal) throw error
    throw loginRefusal('the authorization server did not give a token', error)
  } finally {
    receiver.close()
  }
}

/** Refresh tokens need `offline_access` at servers that know it (OpenID Connect Core §11), which then ask for consent. */
function scopesFor(server: Server, scopes: readonly string[]): readonly string[] {
  const extra = server.scopes_supported?.includes('offline_access') === true ? ['offline_access'] : []
  return [...new Set([...scopes, ...extra])]
}

async function clientFor(
  server: Server,
  redirectUri: string,
  before: Client | undefined,
  { client, clientMetadataUrl, outbound }: LoginOptions,
): Promise<Client> {
  if (client !== undefined)
    return {
      client_id: client.id,
      redirect_uri: redirectUri,
      ...(client.secret === undefined ? {} : { client_secret: client.secret }),
    }
  if (clientMetadataUrl !== undefined && server['client_id_metadata_document_supported'] === true)
    return { client_id: clientMetadataUrl, redirect_uri: redirectUri }
  if (before?.redirect_uri === redirectUri) return before
  const { registration_endpoint: registration } = server
  if (!isSafeUrl(registration))
    throw loginRefusal(
      'the authorization server registers no clients; ask for a client id and give it with --client-id',
    )
  const metadata = {
    client_name: 'extauth stdio',
    redirect_uris: [redirectUri],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
    application_type: 'native',
  }
  try {
    const response = await oauth.dynamicClientRegistrationRequest(server, metadata, callOptions(outbound, registration))
    const registered = await oauth.processDynamicClientRegistrationResponse(response)
    const { client_id: id, client_secret: secret, token_endpoint_auth_method: method } = registered
    return {
      client_id: id,
      redirect_uri: redirectUri,
      ...(typeof secret === 'string' ? { client_secret: secret } : {}),
      ...(typeof method === 'string' ? { token_endpoint_auth_method: method } : {}),
    }
  } catch (error) {
    throw loginRefusal('the authorization server did not register the client', error)
  }
}

interface Pending {
  readonly answer: URLSearchParams
  readonly state: string
  readonly verifier: string
  readonly resource: string
}

async function redeem(
  server: Server,
  client: Client,
  { answer, state, verifier, resource }: Pending,
  outbound: Outbound,
): Promise<oauth.TokenEndpointResponse> {
  let parameters
  try {
    // `state` and, where it is there or announced, `iss` (RFC 9207); an error is thrown as one.
    parameters = oauth.validateAuthResponse(server, client, answer, state)
  } catch (error) {
    const said = error instanceof oauth.AuthorizationResponseError
    throw loginRefusal(
      said ? 'the authorization server refused it' : 'the answer came from another authorization server',
      error,
    )
  }
  const response = await oauth.authorizationCodeGrantRequest(
    server,
    client,
    authenticationOf(client),
    parameters,
    client.redirect_uri,
    verifier,
    { ...callOptions(outbound, server.token_endpoint ?? ''), additionalParameters: { resource } },
  )
  const tokens = await oauth.processAuthorizationCodeResponse(server, client, response)
  if (tokens.token_type !== 'bearer') throw loginRefusal('the token is not one that a bearer can use')
  return tokens
}

/** How the client says that it is itself (RFC 6749 §2.3). */
export function authenticationOf({
  client_secret: secret,
  token_endpoint_auth_method: method,
}: Client): oauth.ClientAuth {
  if (secret === undefined || method === 'none') return oauth.None()
  return method === 'client_secret_post' ? oauth.ClientSecretPost(secret) : oauth.ClientSecretBasic(secret)
}

function recordOf(
  login: {
    readonly endpoint: URL
    readonly resource: string
    readonly server: Server
    readonly client: Client
    readonly scopes: readonly string[]
  },
  tokens: oauth.TokenEndpointResponse,
  nowMs: number,
): LoginRecord {
  const { endpoint, resource, server, client, scopes } = login
  const { token_endpoint: token = '', revocation_endpoint: revocation } = server
  return {
    version: 1,
    issuer: server.issuer,
    resource,
    endpoint: endpoint.href,
    client,
    server: { token_endpoint: token, ...(isSafeUrl(revocation) ? { revocation_endpoint: revocation } : {}) },
    ...tokensOf(tokens, nowMs, scopes.join(' ')),
  }
}

/** What of an answer of the token endpoint is kept. */
export function tokensOf(
  { access_token, expires_in: seconds, refresh_token: refresh, scope }: oauth.TokenEndpointResponse,
  nowMs: number,
  askedScope: string | undefined,
): Pick<LoginRecord, 'access_token' | 'expires_at_ms' | 'refresh_token' | 'scope'> {
  const granted = scope ?? askedScope
  return {
    access_token,
    ...(seconds === undefined ? {} : { expires_at_ms: nowMs + seconds * 1000 }),
    ...(refresh === undefined ? {} : { refresh_token: refresh }),
    ...(granted === undefined || granted === '' ? {} : { scope: granted }),
  }
}
