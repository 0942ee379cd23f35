import cors from '@fastify/cors'
import type { FastifyInstance, FastifyReply } from 'fastify'
import type { Clock } from '../../src/core/index.ts'
import type { LabFaults } from '../faults.ts'
import { type Grant, type LabUser, loginPage, type Logins } from './authorize.ts'
import type { Clients, LabClient } from './clients.ts'
import { exchange, type ExchangePolicy, TOKEN_EXCHANGE } from './exchange.ts'
import { ID_JAG_TYPE, identityAssertion } from './identity-assertion.ts'
import type { SigningKeys } from './keys.ts'
import { type Form, formOf, OAuthRefusal } from './oauth-error.ts'
import { onBehalfOf, type OnBehalfOfDeps } from './on-behalf-of.ts'
import { LAB_AUDIENCE, type Tokens } from './tokens.ts'

/** Lifetime of tokens from a login or from client credentials, in seconds. */
const ACCESS_TOKEN_SECONDS = 3600

/** How often each endpoint was asked, so that a test can count what a cache saved. */
export type Endpoint = 'discovery' | 'jwks' | 'token' | 'exchange' | 'introspection' | 'authorize' | 'register' | 'obo'

export interface EndpointDeps {
  readonly issuer: () => string
  readonly keys: SigningKeys
  readonly tokens: Tokens
  readonly clients: Clients
  readonly logins: Logins
  readonly users: readonly LabUser[]
  readonly faults: LabFaults
  readonly policy: ExchangePolicy
  readonly verify: OnBehalfOfDeps['verify']
  readonly clock: Clock
  readonly count: (endpoint: Endpoint) => void
}

const TAKES_KEYS = /(?:^|[\s,])(?:application\/jwk-set\+json|application\/\*|\*\/\*)(?:$|[\s,;])/i

/** The endpoints of OAuth and OpenID Connect: discovery, keys, login, tokens, introspection, registration. */
export async function registerEndpoints(app: FastifyInstance, deps: EndpointDeps): Promise<void> {
  const { keys, tokens, clients, logins, users, faults, count } = deps
  await app.register(cors, { origin: true, methods: ['GET', 'POST', 'OPTIONS'] })

  for (const path of ['/.well-known/openid-configuration', '/.well-known/oauth-authorization-server']) {
    app.get(path, () => {
      count('discovery')
      return metadata(deps.issuer())
    })
  }
  app.get('/jwks', async (request, reply) => {
    count('jwks')
    // As strict as the API server of Kubernetes, which knows no other media type for keys.
    if (!TAKES_KEYS.test(request.headers.accept ?? '*/*')) return reply.code(406).send()
    void reply.header('cache-control', 'public, max-age=300').type('application/jwk-set+json')
    return JSON.stringify(await keys.jwks())
  })
  app.post('/register', async (request, reply) => {
    count('register')
    const { client, method } = clients.register(request.body)
    return reply.code(201).send({
      client_id: client.id,
      ...(client.secret === undefined ? {} : { client_secret: client.secret.reveal(), client_secret_expires_at: 0 }),
      token_endpoint_auth_method: method,
      redirect_uris: client.redirectUris,
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
    })
  })
  app.get('/authorize', async (request, reply) => {
    count('authorize')
    const url = new URL(request.raw.url ?? '/', deps.issuer())
    const begun = logins.begin(formOf(url.searchParams))
    if ('redirect' in begun) return reply.redirect(begun.redirect)
    return reply.type('text/html; charset=utf-8').send(loginPage(begun.login, users))
  })
  app.post('/login', async (request, reply) => {
    const form = formOf(request.body)
    return reply.redirect(logins.finish(form.require('login'), form.require('user')), 303)
  })
  app.post('/introspect', async (request, reply) => {
    count('introspection')
    await faults.pause('introspection', signalOf(reply))
    const form = formOf(request.body)
    const client = clients.authenticate(request.headers.authorization, form)
    if (client.secret === undefined || !client.may.includes('introspect')) {
      throw new OAuthRefusal('unauthorized_client', 'this client may not introspect tokens', { status: 403 })
    }
    if (faults.settings.introspection === 'throttled') return tooMany(faults)
    if (faults.settings.introspection === 'broken') return reply.type('text/html').send('<h1>It broke.</h1>')
    const claims = await tokens.verify(form.require('token'))
    return claims === undefined
      ? { active: false }
      : { active: true, token_type: 'Bearer', username: claims.sub, ...claims }
  })
  app.post('/:tenant/oauth2/v2.0/token', async (request, reply) => {
    count('obo')
    void reply.header('cache-control', 'no-store')
    await faults.pause('exchange', signalOf(reply))
    if (faults.settings.exchange === 'throttled') return tooMany(faults)
    if (faults.settings.exchange === 'broken') return reply.code(500).type('text/html').send('<h1>It broke.</h1>')
    const { tenant } = request.params as { tenant: string }
    const { status, body } = await onBehalfOf(tenant, formOf(request.body), { ...deps, ...deps.policy })
    return reply.code(status).send(body)
  })
  app.get('/userinfo', (request) => userInfo(request.headers.authorization, deps))
  app.post('/token', async (request, reply) => {
    const form = formOf(request.body)
    const grant = form.require('grant_type')
    void reply.header('cache-control', 'no-store')
    if (grant === TOKEN_EXCHANGE) {
      count('exchange')
      await faults.pause('exchange', signalOf(reply))
      const client = clients.authenticate(request.headers.authorization, form)
      if (faults.settings.exchange === 'throttled') return tooMany(faults)
      if (faults.settings.exchange === 'broken') return reply.code(500).type('text/html').send('<h1>It broke.</h1>')
      const isAssertion = form.get('requested_token_type') === ID_JAG_TYPE
      return isAssertion ? identityAssertion(form, client, deps) : exchange(form, client, deps)
    }
    count('token')
    const client = clients.authenticate(request.headers.authorization, form)
    if (grant === 'client_credentials') {
      await faults.pause('clientCredentials', signalOf(reply))
      if (faults.settings.clientCredentials === 'throttled') return tooMany(faults)
      if (faults.settings.clientCredentials === 'broken')
        return reply.code(500).type('text/html').send('<h1>It broke.</h1>')
      return clientCredentials(form, client, tokens)
    }
    if (grant === 'authorization_code' || grant === 'refresh_token') {
      if (!client.may.includes('authorization_code')) {
        throw new OAuthRefusal('unauthorized_client', 'this client may not use the authorization code grant')
      }
      const granted = grant === 'refresh_token' ? logins.renew(form, client) : logins.redeem(form, client)
      return tokensFor(granted, client, deps)
    }
    throw new OAuthRefusal('unsupported_grant_type', 'this grant type is not supported')
  })
}

/** OpenID Connect Core §5.3: the claims of the user whose access token it is. Throws `invalid_token`. */
async function userInfo(authorization: string | undefined, { tokens, users }: EndpointDeps): Promise<object> {
  const token = /^Bearer ([\w.~+/=-]+)$/i.exec(authorization ?? '')?.[1]
  const { sub } = (token === undefined ? undefined : await tokens.verify(token)) ?? {}
  if (sub === undefined) {
    const headers = { 'www-authenticate': 'Bearer realm="extauth-lab", error="invalid_token"' }
    throw new OAuthRefusal('invalid_token', 'the access token is not valid', { status: 401, headers })
  }
  return { sub, ...users.find(({ subject }) => subject === sub)?.claims }
}

/** Discovery by OpenID Connect and by RFC 8414: one document. */
function metadata(issuer: string): object {
  return {
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    userinfo_endpoint: `${issuer}/userinfo`,
    introspection_endpoint: `${issuer}/introspect`,
    registration_endpoint: `${issuer}/register`,
    jwks_uri: `${issuer}/jwks`,
    scopes_supported: ['openid', 'offline_access', 'mcp:tools'],
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    grant_types_supported: ['authorization_code', 'refresh_token', 'client_credentials', TOKEN_EXCHANGE],
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post', 'none'],
    introspection_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['RS256', 'ES256'],
    authorization_response_iss_parameter_supported: true,
  }
}

async function clientCredentials(form: Form, client: LabClient, tokens: Tokens): Promise<object> {
  if (client.secret === undefined || !client.may.includes('client_credentials')) {
    throw new OAuthRefusal('unauthorized_client', 'this client may not use client credentials')
  }
  const audience = form.get('audience') ?? LAB_AUDIENCE
  if (client.audiences?.includes(audience) !== true) {
    throw new OAuthRefusal('invalid_target', 'this client may not ask for this audience')
  }
  // MCP clients name the resource that they were refused at (RFC 8707), as in the authorization code grant.
  const resources = form.all('resource')
  if (!resources.every((resource) => URL.canParse(resource))) {
    throw new OAuthRefusal('invalid_target', 'resource must be a URL')
  }
  const claims = { client_id: client.id }
  return bearer(tokens, client.id, [audience, ...resources], form.get('scope'), claims, client.tokenSeconds)
}

/** The answer to a code or to a refresh token; `offline_access` gives another refresh token, `openid` an ID token. */
async function tokensFor(grant: Grant, client: LabClient, deps: EndpointDeps): Promise<object> {
  const { subject, claims } = grant.user
  const scopes = new Set(grant.scope?.split(' '))
  const audience = [LAB_AUDIENCE, ...grant.resources]
  const answer = await bearer(deps.tokens, subject, audience, grant.scope, { ...claims, client_id: client.id })
  const refresh = scopes.has('offline_access') ? { refresh_token: deps.logins.refreshTokenFor(grant) } : {}
  if (!scopes.has('openid')) return { ...answer, ...refresh }
  const nonce = grant.nonce === undefined ? {} : { nonce: grant.nonce }
  const now = Math.floor(deps.clock.now() / 1000)
  const exp = now + ACCESS_TOKEN_SECONDS
  const payload = { ...claims, ...nonce, iss: deps.issuer(), sub: subject, aud: client.id, iat: now, exp }
  return { ...answer, ...refresh, id_token: await deps.keys.sign(payload, 'JWT') }
}

async function bearer(
  tokens: Tokens,
  subject: string,
  audience: readonly string[],
  scope: string | undefined,
  claims: Readonly<Record<string, unknown>>,
  ttlSeconds = ACCESS_TOKEN_SECONDS,
): Promise<object> {
  const scoped = scope === undefined ? {} : { scope }
  const accessToken = await tokens.issue({ subject, audience, ttlSeconds, claims: { ...claims, ...scoped } })
  return { access_token: accessToken, token_type: 'Bearer', expires_in: ttlSeconds, ...scoped }
}

function tooMany(faults: LabFaults): never {
  throw new OAuthRefusal('temporarily_unavailable', 'too many requests', {
    status: 429,
    headers: { 'retry-after': String(faults.settings.retryAfterSeconds) },
  })
}

/** Fires when the client has gone, so that a slow answer does not outlive its question. */
function signalOf(reply: FastifyReply): AbortSignal {
  const gone = new AbortController()
  reply.raw.once('close', () => gone.abort())
  return gone.signal
}
