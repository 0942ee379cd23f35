import { type EndpointResponse, Failure, type LocalRequest } from '../core/index.ts'
import { shapeOf } from '../oauth/index.ts'
import { JWT_BEARER } from '../resources/index.ts'
import type { AuthenticateClient, ClientForm } from './clients/authentication.ts'
import type { Client, GrantType } from './clients/client.ts'
import type { ClientDirectory } from './clients/directory.ts'
import { isIdentityAssertion } from './grants/assertion.ts'
import type { GrantsWithoutLogin } from './grants/without-login.ts'
import { OAuthError } from './oauth-error.ts'
import { jsonResponse } from './reply.ts'
import type { TokenAnswer } from './tokens/issue.ts'
import type { TokenParameters, TokenService } from './tokens/token-service.ts'

export interface TokenEndpointParts {
  readonly issuer: string
  readonly authenticateClient: AuthenticateClient
  readonly clients: ClientDirectory
  readonly tokens: TokenService
  readonly withoutLogin: GrantsWithoutLogin
  /** The grants of this server. */
  readonly grantTypes: readonly GrantType[]
}

type Handle = (request: LocalRequest) => Promise<EndpointResponse>

/** Parameters that may occur several times (RFC 8707 §2.1). */
const SEVERAL = 'resource'
const ONCE = [
  'client_id',
  'client_secret',
  'client_assertion',
  'client_assertion_type',
  'grant_type',
  'code',
  'code_verifier',
  'redirect_uri',
  'refresh_token',
  'assertion',
  'scope',
  'token',
  'token_type_hint',
] as const

type Form = { readonly [K in (typeof ONCE)[number]]?: string } & ClientForm & TokenParameters

/** The token endpoint (RFC 6749 §3.2) with client authentication, and revocation (RFC 7009). */
export function createTokenEndpoint(parts: TokenEndpointParts): { readonly token: Handle; readonly revoke: Handle } {
  const { clients, tokens, withoutLogin } = parts
  const grants: Readonly<Record<GrantType, (client: Client, form: Form) => Promise<TokenAnswer>>> = {
    authorization_code: (client, form) => tokens.redeem(client, form),
    refresh_token: (client, form) => tokens.refresh(client, form),
    [JWT_BEARER]: (client, form) => withoutLogin.assertion(client, form),
    client_credentials: (client, form) => withoutLogin.clientCredentials(client, form),
  }

  const issue = async (client: Client, form: Form): Promise<object> => {
    if (form.grant_type === undefined) throw new OAuthError('invalid_request', 'grant_type is missing')
    const grant = parts.grantTypes.find((one) => one === form.grant_type)
    if (grant === undefined) throw new OAuthError('unsupported_grant_type', 'this grant is not supported')
    if (!client.grantTypes.includes(grant))
      throw new OAuthError('unauthorized_client', 'the client is not registered for this grant')
    const answer = await grants[grant](client, form)
    await clients.noteUse(client)
    return answer
  }

  /**
   * For a workload, which presents its own token and no client (RFC 7521 §4.1); a `client_id` beside it is ignored.
   */
  const forWorkload = (form: Form, authorization: string | undefined) => {
    const { grant_type: type, assertion, client_secret: secret, client_assertion: shown } = form
    const isAlone = authorization === undefined && secret === undefined && shown === undefined
    const isOne = type === JWT_BEARER && isAlone && !isIdentityAssertion(assertion ?? '')
    return isOne ? withoutLogin.workload?.(form) : undefined
  }

  const revoke = async (client: Client, { token }: Form): Promise<undefined> => {
    if (token === undefined) throw new OAuthError('invalid_request', 'token is missing')
    if (shapeOf(token).kind !== 'opaque')
      throw new OAuthError('unsupported_token_type', 'access tokens are revoked with the refresh token of their login')
    const family = await tokens.familyOf(token)
    // Another client's token is ignored, without revealing that it exists (RFC 7009 §2.2).
    if (family !== undefined && family.clientId === client.id) await tokens.end(family.tsid)
  }

  const forClients =
    (
      work: (client: Client, form: Form) => Promise<object | undefined>,
      withoutClient: (form: Form, authorization: string | undefined) => Promise<object> | undefined = () => undefined,
    ): Handle =>
    async (request) => {
      const { authorization } = request.request.headers
      try {
        const form = readForm(request)
        const answer =
          withoutClient(form, authorization) ?? work(await parts.authenticateClient(form, authorization), form)
        return jsonResponse(200, await answer)
      } catch (error) {
        if (!(error instanceof OAuthError)) throw error
        if (error.status >= 500) throw new Failure('internal_error', { detail: error.description, cause: error })
        // RFC 6749 §5.2: the response to a client that used the header names the scheme.
        const isAsked = error.status === 401 && authorization !== undefined
        const challenge = isAsked ? { 'www-authenticate': `Basic realm="${parts.issuer}"` } : {}
        return jsonResponse(error.status, { error: error.error, error_description: error.description }, challenge)
      }
    }

  return { token: forClients(issue, forWorkload), revoke: forClients(revoke) }
}

/** Parses parameters: each once, empty ones count as absent (RFC 6749 §3.2), unknown ones are ignored. */
function readForm({ request, body }: LocalRequest): Form {
  const type = request.headers['content-type']?.split(';')[0]?.trim().toLowerCase()
  if (type !== 'application/x-www-form-urlencoded')
    throw new OAuthError('invalid_request', 'the content type must be application/x-www-form-urlencoded')
  const sent = new URLSearchParams(body.toString('utf8'))
  const form: Partial<Record<(typeof ONCE)[number], string>> = {}
  for (const name of ONCE) {
    const [value = '', ...more] = sent.getAll(name)
    if (more.length > 0) throw new OAuthError('invalid_request', `${name} occurs more than once`)
    if (value !== '') form[name] = value
  }
  const resource = sent.getAll(SEVERAL).filter((value) => value !== '')
  return resource.length === 0 ? form : { ...form, resource }
}
