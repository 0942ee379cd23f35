import { createHash, randomBytes } from 'node:crypto'
import { openAuthServer, type AuthServer, type AuthServerConfig } from '../../../src/authserver/index.ts'
import type { AuditNotice } from '../../../src/core/index.ts'
import { once } from '../../../src/fields/index.ts'
import { createEphemeralKeys } from '../../../src/signing/index.ts'
import { createOutbound, type Resolver } from '../../../src/net/index.ts'
import { embeddedAuthServer } from '../../../src/resources/embedded-auth-server.ts'
import { upstreamProvider } from '../../../src/resources/upstream/upstream-provider.ts'
import { createMemoryStore, type Store } from '../../../src/storage/index.ts'
import type { ProxyOptions } from '../../../src/proxy/index.ts'
import { runtimeOf, startProxy } from '../proxy/harness.ts'
import { createTestSecrets, type ManualClock, monotonicOf, type RecordingLog } from '../ports.ts'
import type { Sockets } from '../sockets.ts'
import { TLS } from '../tls.ts'
import { Browser, type Seen } from './browser.ts'
import { startIdp, type Idp } from '../upstreams/idp.ts'
import { NO_FILES } from '../upstreams/rig.ts'

export const REDIRECT = 'http://127.0.0.1:7777/callback'
export const HMAC = 'an HMAC secret of more than thirty-two bytes'
/** Limits that tests do not reach. */
export const LIMITS = {
  registration: { perSecond: 10_000, burst: 10_000 },
  authorize: { perSecond: 10_000, burst: 10_000 },
  token: { perSecond: 10_000, burst: 10_000 },
  registeredClients: 10_000,
}
export const SECRETS = { 'idp/secret': 'of us', 'idp/ca': TLS.ca.toString(), 'as/hmac': HMAC }

export interface RigOptions {
  /** Put over the spec of a server with one OIDC upstream. */
  readonly spec?: Readonly<Record<string, unknown>> | ((idp: Idp) => Readonly<Record<string, unknown>>)
  /** Replaces the one OIDC upstream. */
  readonly upstreams?: (idp: Idp) => readonly object[]
  /** Path of the issuer. */
  readonly path?: string
  readonly resources?: (url: string) => AuthServerConfig['resources']
  readonly secrets?: Readonly<Record<string, string>>
  readonly store?: (rig: { readonly clock: ManualClock; readonly log: RecordingLog }) => Store
  readonly resolver?: Resolver
  /** The listener's certificate: the issuer is https then. */
  readonly tls?: ProxyOptions['listen']['tls']
  /** Hosts that the listener takes beside its own. */
  readonly allowedHosts?: readonly string[]
}

export const upstreamOf = (idp: Idp, name = 'corp', more: Readonly<Record<string, unknown>> = {}) => ({
  name,
  type: 'oidc',
  caBundleRef: { name: 'idp', key: 'ca' },
  oidcConfig: { issuerUrl: idp.url, clientId: 'us', clientSecretRef: { name: 'idp', key: 'secret' }, ...more },
})

// Making a schema takes longer than using it.
const schemas = { server: once(embeddedAuthServer), upstream: once(upstreamProvider) }

/** An additional upstream, `crm`, for a reopened server. */
export const parsedUpstream = (idp: Idp, more: Readonly<Record<string, unknown>> = {}, name = 'crm') =>
  schemas.upstream().parse(upstreamOf(idp, name, { scopes: ['openid'], ...more }))

/** A server on the real listener, with an identity provider that is as a test wants it. */
export async function startRig(sockets: Sockets, options: RigOptions = {}) {
  const idp = await startIdp(sockets)
  const { tls, allowedHosts = [] } = options
  const proxy = await startProxy(sockets, runtimeOf([]), { allowedHosts, ...(tls === undefined ? {} : { tls }) })
  const { clock, log, metrics, url } = proxy
  const secrets = createTestSecrets({ ...SECRETS, ...options.secrets })
  const store = options.store?.({ clock, log }) ?? createMemoryStore({ clock, log })
  const issuer = `${url}${options.path ?? ''}`
  const spec = schemas.server().parse({
    issuer,
    upstreamProviders: options.upstreams?.(idp) ?? [upstreamOf(idp)],
    hmacSecretRefs: [{ name: 'as', key: 'hmac' }],
    ...(typeof options.spec === 'function' ? options.spec(idp) : options.spec),
  })
  const resources = options.resources?.(url) ?? [
    { url: `${url}/mcp`, scopes: ['mcp:read', 'mcp:write'], providers: [] },
  ]
  const ephemeral = createEphemeralKeys()
  const { resolver } = options
  const notices: AuditNotice[] = []
  const deps = {
    audit: { notice: (notice: AuditNotice) => void notices.push(notice) },
    clock,
    log,
    metrics,
    secrets,
    store,
    ephemeral,
    ...NO_FILES,
    outbound: (wanted: Parameters<Parameters<typeof openAuthServer>[1]['outbound']>[0]) =>
      createOutbound({
        ...wanted,
        clock,
        monotonicClock: monotonicOf(clock),
        retry: false,
        ...(resolver === undefined ? {} : { resolver }),
      }),
  }
  const open = (config: Partial<AuthServerConfig> = {}): AuthServer => {
    const server = sockets.closing(openAuthServer({ name: 'default/as', spec, resources, ...config }, deps))
    proxy.swap({ ...runtimeOf([]), localHandlers: server.handlers })
    return server
  }
  const server = open()
  return { idp, proxy, url, issuer, clock, log, metrics, secrets, store, server, spec, resources, open, deps, notices }
}

export type Rig = Awaited<ReturnType<typeof startRig>>

export interface TestClient {
  readonly id: string
  readonly secret: string | undefined
  /** Registered scopes; undefined for clients that a test creates itself. */
  readonly grantTypes?: readonly string[] | undefined
}

/** Registers a client as an official one does. */
export async function register(rig: Pick<Rig, 'issuer'>, metadata: object = {}): Promise<TestClient> {
  const response = await postJson(`${rig.issuer}/oauth/register`, {
    client_name: 'Test Client',
    redirect_uris: [REDIRECT],
    grant_types: ['authorization_code', 'refresh_token'],
    ...metadata,
  })
  const body = (await response.json()) as { client_id: string; client_secret?: string; grant_types?: string[] }
  if (response.status !== 201) throw new Error(JSON.stringify(body))
  return { id: body.client_id, secret: body.client_secret, grantTypes: body.grant_types }
}

export const postJson = (url: string, body: unknown): Promise<Response> =>
  fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })

/** Posts a form, or this text as one; `headers` may say that it is something else. */
export function postForm(
  url: string,
  form: Readonly<Record<string, string>> | string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const body = typeof form === 'string' ? form : new URLSearchParams(form).toString()
  const type = { 'content-type': 'application/x-www-form-urlencoded' }
  return fetch(url, { method: 'POST', headers: { ...type, ...headers }, body })
}

/** Of a client that shows its secret in a header (RFC 6749 §2.3.1). */
export const basic = (id: string, secret: string) => `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`

export interface Pkce {
  readonly verifier: string
  readonly challenge: string
}

export function makePkce(): Pkce {
  const verifier = randomBytes(32).toString('base64url')
  return { verifier, challenge: createHash('sha256').update(verifier).digest('base64url') }
}

/** The parts of a server that a login uses. */
export interface LoginRig {
  readonly issuer: string
  readonly idp: Idp
  readonly clock: { now(): number }
  readonly resources: readonly { readonly url: string }[]
  readonly server: { readonly addresses: Pick<AuthServer['addresses'], 'authorizeUrl'> }
}

/** The address of an authorization request; undefined takes a parameter out. */
export function authorizeUrl(
  rig: Pick<LoginRig, 'resources' | 'server'>,
  client: TestClient,
  pkce: Pkce,
  more: Readonly<Record<string, string | undefined>> = {},
): string {
  const url = new URL(rig.server.addresses.authorizeUrl)
  const parameters = {
    response_type: 'code',
    client_id: client.id,
    redirect_uri: REDIRECT,
    code_challenge: pkce.challenge,
    code_challenge_method: 'S256',
    state: 'state-of-the-client',
    scope: 'mcp:read',
    resource: rig.resources[0]?.url,
    ...more,
  }
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined) url.searchParams.set(name, value)
  return url.href
}

/** The identity provider's response to a redirected browser: a redirect with a code. */
export async function atUpstream(
  rig: Pick<LoginRig, 'idp' | 'clock'>,
  browser: Browser,
  sent: Seen,
  more: Readonly<Record<string, string>> = {},
): Promise<Seen> {
  return browser.get(backFrom(rig, sent, more))
}

/** The address to which an identity provider sends a browser back. */
export function backFrom(
  { idp, clock }: Pick<LoginRig, 'idp' | 'clock'>,
  sent: Seen,
  more: Readonly<Record<string, string>> = {},
): string {
  const there = new URL(sent.location ?? '')
  if (there.origin !== idp.url) throw new Error(`sent to ${there.href} (${sent.status}): ${sent.html}`)
  idp.nonce = there.searchParams.get('nonce') ?? ''
  const code = `code-${idp.codes.size + 1}`
  idp.codes.set(code, idp.nonce)
  const now = Math.floor(clock.now() / 1000)
  idp.claims = { ...idp.claims, iat: now, exp: now + 600 }
  const back = new URL(there.searchParams.get('redirect_uri') ?? '')
  const parameters = { code, state: there.searchParams.get('state') ?? '', iss: idp.url, ...more }
  for (const [name, value] of Object.entries(parameters)) if (value !== '') back.searchParams.set(name, value)
  return back.href
}

/** From the authorization request to what the client gets. */
export async function logIn(
  rig: LoginRig,
  client: TestClient,
  options: {
    readonly browser?: Browser
    readonly pkce?: Pkce
    readonly more?: Readonly<Record<string, string | undefined>>
  } = {},
): Promise<{ readonly answer: URLSearchParams; readonly pkce: Pkce; readonly browser: Browser }> {
  const { browser = new Browser(), pkce = makePkce() } = options
  const asked = await browser.get(authorizeUrl(rig, client, pkce, options.more))
  const sent = asked.status === 200 ? await browser.press(asked, 'continue') : asked
  const back = await atUpstream(rig, browser, sent)
  return { answer: new URL(back.location ?? '').searchParams, pkce, browser }
}

export interface Tokens {
  readonly access_token: string
  readonly refresh_token?: string
  readonly scope?: string
  readonly expires_in: number
  readonly token_type: string
}

/** A code for tokens. */
export function redeem(
  rig: Pick<Rig, 'issuer'>,
  client: TestClient,
  code: string,
  pkce: Pkce,
  more: Readonly<Record<string, string>> = {},
) {
  return postForm(`${rig.issuer}/oauth/token`, {
    grant_type: 'authorization_code',
    client_id: client.id,
    code,
    code_verifier: pkce.verifier,
    redirect_uri: REDIRECT,
    ...more,
  })
}

export const refresh = (
  rig: Pick<Rig, 'issuer'>,
  client: TestClient,
  token: string,
  more: Readonly<Record<string, string>> = {},
) =>
  postForm(`${rig.issuer}/oauth/token`, {
    grant_type: 'refresh_token',
    client_id: client.id,
    refresh_token: token,
    ...more,
  })

/** A whole login: the tokens of a client. */
export async function getTokens(
  rig: LoginRig,
  client: TestClient,
  options: Parameters<typeof logIn>[2] = {},
): Promise<Tokens> {
  const { answer, pkce } = await logIn(rig, client, options)
  const response = await redeem(rig, client, answer.get('code') ?? '', pkce)
  const body = (await response.json()) as Tokens
  if (response.status !== 200) throw new Error(JSON.stringify(body))
  return body
}
