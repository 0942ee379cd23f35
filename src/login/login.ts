import { createHash, randomBytes } from 'node:crypto'
import { CredentialRefusal, type EpochMs, type Outbound, type OutboundResponse } from '../core/index.ts'
import { readJsonObject } from '../http/index.ts'
import {
  type AuthorizationServer,
  type BearerChallenge,
  discoverResource,
  readCallback,
  scopesIn,
} from '../oauth/index.ts'
import { openReceiver } from './receiver.ts'
import { askAs, loginRefusal, textOf } from './server-calls.ts'
import type { LoginRecord } from './store.ts'
import { tokensOf } from './tokens.ts'

/** A pre-registered client, or one with a metadata document. */
export interface KnownClient {
  readonly id: string
  readonly secret?: string | undefined
}

export interface LoginOptions {
  /** The MCP server. */
  readonly endpoint: URL
  readonly outbound: Outbound
  /** Pre-registered client. Default: a metadata document, else registration. */
  readonly client?: KnownClient | undefined
  /** URL of a client ID metadata document, used when the authorization server supports it. */
  readonly clientMetadataUrl?: string | undefined
  /** Opens the URL in the user's browser. */
  readonly openBrowser: (url: string) => void
  readonly now: () => EpochMs
  /** Deadline for the user in milliseconds. */
  readonly patienceMs: number
  /** Aborts the login. */
  readonly signal?: AbortSignal | undefined
}

type Client = LoginRecord['client']

/** The login to be replaced. */
interface ReplacedLogin extends Pick<LoginRecord, 'issuer' | 'resource' | 'scope' | 'client'> {
  /** False: the server may have forgotten the client, so a new one is registered if possible. */
  readonly isClientKnown: boolean
}

/**
 * Logs a user in for an MCP server, from its challenge to tokens (MCP authorization): discovery, client, browser with
 * PKCE, `state` and `resource`, code at a loopback port, check of `iss`. `before` is the login to be replaced. Throws
 * `CredentialRefusal` login_failed.
 */
export async function logIn(
  asked: BearerChallenge,
  before: ReplacedLogin | undefined,
  options: LoginOptions,
): Promise<LoginRecord> {
  const { endpoint, outbound, now } = options
  const { resource, server, scopes } = await discoverResource(endpoint, asked, { ...options, refuse: loginRefusal })
  const isSame = before?.issuer === server.issuer && before.resource === resource
  const mayRegister = server.registrationEndpoint !== undefined
  const known = isSame && (before.isClientKnown || !mayRegister) ? before.client : undefined
  const state = randomText()
  const receiver = await openReceiver({
    patienceMs: options.patienceMs,
    signal: options.signal,
    accepts: (answer) => answer.get('state') === state,
    port: known === undefined ? undefined : Number(new URL(known.redirect_uri).port),
  }).catch((error: unknown) => {
    throw loginRefusal('cannot listen on 127.0.0.1', error)
  })
  try {
    const client = await clientFor(server, receiver.url, known, options)
    const verifier = randomText()
    const wanted = scopesFor(server, isSame ? [...scopesIn(before.scope), ...scopes] : scopes)
    const url = new URL(server.authorizationEndpoint)
    const parameters = {
      response_type: 'code',
      client_id: client.client_id,
      redirect_uri: client.redirect_uri,
      state,
      code_challenge: createHash('sha256').update(verifier).digest('base64url'),
      code_challenge_method: 'S256',
      resource,
      ...(wanted.length === 0 ? {} : { scope: wanted.join(' ') }),
      ...(wanted.includes('offline_access') ? { prompt: 'consent' } : {}),
    }
    for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
    options.openBrowser(url.href)
    const answer = await receiver.answer.catch(() => {
      throw loginRefusal('the browser did not return in time')
    })
    const sentAtMs = now()
    const response = await redeem(server, client, { answer, verifier, resource }, outbound)
    const times = { sentAtMs, nowMs: now() }
    return recordOf({ endpoint, resource, server, client, scopes: wanted }, response, times)
  } catch (error) {
    if (error instanceof CredentialRefusal) throw error
    throw loginRefusal('the authorization server issued no token', error)
  } finally {
    receiver.close()
  }
}

/**
 * Servers that know `offline_access` require it for refresh tokens (OpenID Connect Core §11), and then ask for
 * consent.
 */
function scopesFor(server: AuthorizationServer, scopes: readonly string[]): readonly string[] {
  const extra = server.scopes.includes('offline_access') ? ['offline_access'] : []
  return [...new Set([...scopes, ...extra])]
}

async function clientFor(
  server: AuthorizationServer,
  redirectUri: string,
  before: Client | undefined,
  { client, clientMetadataUrl, outbound }: LoginOptions,
): Promise<Client> {
  if (client !== undefined)
    return {
      client_id: client.id,
      redirect_uri: redirectUri,
      ...(client.secret === undefined ? {} : { client_secret: client.secret }),
      ...(server.secretInBody ? { token_endpoint_auth_method: 'client_secret_post' } : {}),
    }
  if (clientMetadataUrl !== undefined && server.takesDocuments)
    return { client_id: clientMetadataUrl, redirect_uri: redirectUri }
  if (before?.redirect_uri === redirectUri) return before
  const { registrationEndpoint } = server
  if (registrationEndpoint === undefined)
    throw loginRefusal(
      'the authorization server does not support client registration; obtain a client id and pass it with --client-id',
    )
  const metadata = {
    client_name: 'extauth stdio',
    redirect_uris: [redirectUri],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: server.authMethod,
    application_type: 'native',
  }
  try {
    return await register(registrationEndpoint, redirectUri, metadata, outbound)
  } catch (error) {
    if (error instanceof CredentialRefusal) throw error
    throw loginRefusal('the client registration failed', error)
  }
}

/** Registers a client (RFC 7591 §3). Throws `OutboundError`, and `CredentialRefusal` for an invalid response. */
async function register(url: string, redirectUri: string, metadata: object, outbound: Outbound): Promise<Client> {
  const headers = { 'content-type': 'application/json', accept: 'application/json' }
  const { status, body } = await outbound.request({ method: 'POST', url, headers, body: JSON.stringify(metadata) })
  const registered = status === 201 || status === 200 ? readJsonObject(body) : undefined
  const id = registered === undefined ? undefined : textOf(registered, 'client_id')
  if (registered === undefined || id === undefined)
    throw loginRefusal(`the client registration failed (the authorization server answered ${status})`)
  const secret = textOf(registered, 'client_secret')
  const method = textOf(registered, 'token_endpoint_auth_method')
  return {
    client_id: id,
    redirect_uri: redirectUri,
    ...(secret === undefined ? {} : { client_secret: secret }),
    ...(method === undefined ? {} : { token_endpoint_auth_method: method }),
  }
}

/** 256 random bits. */
const randomText = (): string => randomBytes(32).toString('base64url')

interface Pending {
  readonly answer: URLSearchParams
  readonly verifier: string
  readonly resource: string
}

async function redeem(
  server: AuthorizationServer,
  client: Client,
  { answer, verifier, resource }: Pending,
  outbound: Outbound,
): Promise<OutboundResponse> {
  const form = [
    ['grant_type', 'authorization_code'],
    ['code', codeOf(server, answer)],
    ['redirect_uri', client.redirect_uri],
    ['code_verifier', verifier],
    ['resource', resource],
  ] as const
  return askAs(client, server.tokenEndpoint, form, outbound)
}

/** The receiver has checked `state`; this checks `iss`, if present or announced (RFC 9207), and errors. */
function codeOf(rules: AuthorizationServer, answer: URLSearchParams): string {
  try {
    return readCallback(answer, rules)
  } catch (error) {
    const what = answer.has('error')
      ? 'the authorization server rejected it'
      : 'the response is from a different authorization server'
    throw loginRefusal(what, error)
  }
}

function recordOf(
  login: {
    readonly endpoint: URL
    readonly resource: string
    readonly server: AuthorizationServer
    readonly client: Client
    readonly scopes: readonly string[]
  },
  response: OutboundResponse,
  times: { readonly sentAtMs: EpochMs; readonly nowMs: EpochMs },
): LoginRecord {
  const { endpoint, resource, server, client, scopes } = login
  const { tokenEndpoint: token, revocationEndpoint: revocation } = server
  return {
    version: 1,
    issuer: server.issuer,
    resource,
    endpoint: endpoint.href,
    client,
    server: { token_endpoint: token, ...(revocation === undefined ? {} : { revocation_endpoint: revocation }) },
    ...tokensOf(response, { url: token, grant: 'code', ...times, requested: scopes }),
  }
}
