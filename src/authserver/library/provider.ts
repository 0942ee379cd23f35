import { createHash, generateKeyPairSync, randomBytes, timingSafeEqual } from 'node:crypto'
import { errors, Provider, type Configuration, type KoaContextWithOIDC } from 'oidc-provider'
import { type Clock, Failure, type Outbound } from '../../core/index.ts'
import { JWT_BEARER } from '../../resources/index.ts'
import type { Asker } from '../asker.ts'
import { ASSERTION_ALGORITHMS, AUTH_METHODS, type Client, type GrantType } from '../clients/client.ts'
import type { ClientDirectory } from '../clients/directory.ts'
import type { GrantsWithoutLogin } from '../grants/without-login.ts'
import { TOLERANCE_SECONDS } from '../lifespans.ts'
import { OAuthError } from '../oauth-error.ts'
import type { TokenAnswer } from '../tokens/issue.ts'
import type { TokenParameters } from '../tokens/token-service.ts'
import { createAdapter, MOST_ASSERTION_SECONDS, type AdapterParts } from './adapter.ts'

export interface ProviderParts extends AdapterParts {
  readonly clock: Clock
  readonly issuer: string
  /** Where the library's paths are below the issuer. */
  readonly paths: { readonly token: string; readonly revocation: string }
  /** For the `jwks_uri` of clients: through the address guard. */
  readonly outbound: Outbound
  readonly asker: Asker
  readonly withoutLogin: GrantsWithoutLogin
}

/** The library knows only the process's clock: it is told to tolerate everything, and the times are judged by ours. */
const ANY_TIME_SECONDS = 10_000_000_000

/** Throws `config_error` where what is replaced below is not there: it would be left as it is, and nobody told. */
export function checkLibrary({ Client }: Pick<Provider, 'Client'>): void {
  const { Schema } = Client as unknown as {
    readonly Schema?: { readonly prototype: { readonly redirectUris?: unknown } }
  }
  const { compareClientSecret } = Client.prototype as { readonly compareClientSecret?: unknown }
  if (typeof Schema?.prototype.redirectUris === 'function' && typeof compareClientSecret === 'function') return
  throw new Failure('config_error', {
    detail:
      'the authorization server library (oidc-provider) is not the one that this program was made for: what is replaced in it has moved. Install exactly what package-lock.json names (npm ci)',
  })
}

/**
 * The server library, as far as it is used: the token endpoint with all client authentication, and revocation. It signs nothing
 * and keeps nothing (docs/adr/0045); what it answers to authorization requests is never reached.
 */
export function createProvider(parts: ProviderParts): Provider {
  const provider = new Provider(parts.issuer, configurationOf(parts))
  // What comes is made by `call.ts`, which says the scheme and host of the issuer.
  provider.proxy = true
  checkLibrary(provider)
  // Redirect URIs are judged when a client is registered, by our rules.
  const { Schema } = provider.Client as unknown as { readonly Schema: { readonly prototype: object } }
  Object.defineProperty(Schema.prototype, 'redirectUris', { value: () => {} })
  Object.defineProperty(provider.Client.prototype, 'compareClientSecret', { value: compareHashed })
  const { tokens, clients, withoutLogin } = parts
  registerGrant(
    provider,
    clients,
    'authorization_code',
    ['code', 'code_verifier', 'redirect_uri'],
    (client, parameters) => tokens.redeem(client, parameters),
  )
  registerGrant(provider, clients, 'refresh_token', ['refresh_token', 'scope'], (client, parameters) =>
    tokens.refresh(client, parameters),
  )
  if (parts.grantTypes.includes(JWT_BEARER))
    registerGrant(provider, clients, JWT_BEARER, ['assertion', 'scope'], (client, parameters) =>
      withoutLogin.assertion(client, parameters),
    )
  if (parts.grantTypes.includes('client_credentials'))
    registerGrant(provider, clients, 'client_credentials', ['scope'], (client, parameters) =>
      withoutLogin.clientCredentials(client, parameters),
    )
  return provider
}

function configurationOf(parts: ProviderParts): Configuration {
  const off = { enabled: false }
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return {
    adapter: (model) => createAdapter(model, parts),
    clientAuthMethods: [...AUTH_METHODS],
    clientBasedCORS: () => true,
    clientDefaults: { id_token_signed_response_alg: 'ES256', token_endpoint_auth_method: 'none' },
    clockTolerance: ANY_TIME_SECONDS,
    cookies: { keys: [randomBytes(32).toString('base64url')] },
    enabledJWA: { clientAuthSigningAlgValues: [...ASSERTION_ALGORITHMS], idTokenSigningAlgValues: ['ES256'] },
    features: {
      devInteractions: off,
      dPoP: off,
      pushedAuthorizationRequests: off,
      resourceIndicators: off,
      revocation: {
        enabled: true,
        // Somebody else's token is left alone, and nobody is told that it is one (RFC 7009 §2.2).
        allowedPolicy: (_ctx, client, token) => token.clientId === client.clientId,
      },
      rpInitiatedLogout: off,
      userinfo: off,
    },
    fetch: (url, options) => guardedFetch(parts, url, options),
    // Never used: the library wants one.
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }) }] },
    responseTypes: ['code'],
    routes: parts.paths,
    scopes: [],
    assertJwtClientAuthClaimsAndHeader: (_ctx, claims) => {
      // No other audience: the library would also accept URLs made of the Host header.
      const audiences = [claims.aud].flat()
      const { token, revocation } = parts.paths
      const own: ReadonlySet<unknown> = new Set(['', token, revocation].map((path) => parts.issuer + path))
      if (!audiences.every((audience) => own.has(audience)))
        throw new errors.InvalidClientAuth('the assertion is for somebody else, too')
      const problem = assertionTimeProblem(claims, parts.clock.now() / 1_000)
      if (problem !== undefined) throw new errors.InvalidClientAuth(problem)
      return Promise.resolve()
    },
  }
}

/** RFC 7523 §3: `exp` is required, `nbf` and `iat` may be there; 5 s of tolerance. */
function assertionTimeProblem(claims: Readonly<Record<string, unknown>>, nowSeconds: number): string | undefined {
  const { exp, nbf = 0, iat = 0 } = claims
  if (typeof exp !== 'number' || typeof nbf !== 'number' || typeof iat !== 'number')
    return 'exp, nbf and iat are numbers'
  if (nowSeconds - TOLERANCE_SECONDS >= exp) return 'the assertion has expired'
  if (Math.max(nbf, iat) > nowSeconds + TOLERANCE_SECONDS) return 'the assertion is not valid yet'
  return exp > nowSeconds + MOST_ASSERTION_SECONDS ? 'the assertion lives too long' : undefined
}

function compareHashed(this: { clientSecret?: string }, given: string): boolean {
  const expected = Buffer.from(this.clientSecret ?? '')
  const hashed = Buffer.from(createHash('sha256').update(given).digest('base64url'))
  return expected.length === hashed.length && timingSafeEqual(expected, hashed)
}

type Work = (client: Client, parameters: TokenParameters) => Promise<TokenAnswer>

function registerGrant(
  provider: Provider,
  clients: ClientDirectory,
  type: GrantType,
  names: string[],
  work: Work,
): void {
  const handler = async (ctx: KoaContextWithOIDC): Promise<void> => {
    const client = await clients.find(ctx.oidc.client?.clientId ?? '')
    if (client === undefined) throw new errors.InvalidClientAuth('client not found')
    try {
      if (!client.grantTypes.includes(type))
        throw new OAuthError('unauthorized_client', 'the client has not registered this grant')
      ctx.body = await work(client, ctx.oidc.params as TokenParameters)
    } catch (error) {
      throw error instanceof OAuthError ? refusalOf(error) : error
    }
    await clients.noteUse(client)
  }
  provider.registerGrantType(type, handler, [...names, 'resource'], ['resource'])
}

function refusalOf({ error, description, status }: OAuthError): Error {
  const refusal = new errors.CustomOIDCProviderError(error, description)
  return status < 500 ? Object.assign(refusal, { status, statusCode: status }) : new Error(error)
}

async function guardedFetch(
  { outbound, asker }: Pick<ProviderParts, 'outbound' | 'asker'>,
  url: Request | URL | string,
  options: RequestInit | undefined,
): Promise<Response> {
  const headers = Object.fromEntries(new Headers(options?.headers))
  const address = url instanceof Request ? url.url : String(url)
  const {
    status,
    headers: answered,
    body,
  } = await outbound.request({ method: 'GET', url: address, headers, onBehalfOf: asker.onBehalf(address) })
  return new Response(Uint8Array.from(body), { status, headers: { ...answered } })
}
