import { isRegistered } from '../clients/redirect-uri.ts'
import type { Client } from '../clients/client.ts'
import type { ClientDirectory } from '../clients/directory.ts'
import { scopesIn } from '../../oauth/index.ts'
import { OAuthError } from '../oauth-error.ts'
import { OFFLINE_ACCESS, type ResourceNames } from '../resource-names.ts'

/** A validated authorization request: the basis of consent and code. */
export interface LoginRequest {
  readonly client: Pick<Client, 'id' | 'kind' | 'name'>
  readonly redirectUri: string
  readonly isRedirectGiven: boolean
  readonly state: string | undefined
  readonly challenge: string
  readonly scope: readonly string[]
  /** Requested scopes that were not granted; a refresh may repeat them (RFC 6749 §6). */
  readonly notGranted?: readonly string[]
  /** URL of the resource, as configured. */
  readonly resource: string
  /** Ignores stored consent (`prompt=consent`). */
  readonly mustAsk: boolean
}

/**
 * `login`: continue. `page`: show an error page, because the client is unverified. `answer`: return an error to the
 * client.
 */
export type RequestValidation =
  | { readonly kind: 'login'; readonly request: LoginRequest; readonly isSilent: boolean }
  | { readonly kind: 'page'; readonly error: OAuthError }
  | {
      readonly kind: 'answer'
      readonly client: LoginRequest['client']
      readonly redirectUri: string
      readonly state: string | undefined
      readonly error: OAuthError
    }

/** Maximum query length of an authorization request in characters; derived values must fit into a URL again. */
const MOST_QUERY = 8_192
const MOST_STATE = 2_048
const MOST_SCOPE = 2_048
/** Maximum total length of stored scopes that were not granted. */
const MOST_NOT_GRANTED = 512

/** Parameters that may occur once (RFC 6749 §3.1); `resource` is checked separately. */
const SINGLE = [
  'response_type',
  'client_id',
  'redirect_uri',
  'scope',
  'state',
  'code_challenge',
  'code_challenge_method',
  'response_mode',
  'prompt',
  'nonce',
  'request',
  'request_uri',
  'registration',
] as const

/**
 * Validates an authorization request (authserver.md §3; RFC 6749 §4.1.2.1, RFC 7636 §4.4.1, RFC 8707 §2). Throws
 * `Failure` when the client lookup fails.
 */
export async function validateRequest(
  query: string,
  { clients, resources }: { readonly clients: ClientDirectory; readonly resources: ResourceNames },
): Promise<RequestValidation> {
  if (query.length > MOST_QUERY) return page('invalid_request', 'the request is too long')
  const parameters = new URLSearchParams(query)
  const doubled = SINGLE.filter((name) => parameters.getAll(name).length > 1)
  if (doubled.includes('client_id') || doubled.includes('redirect_uri'))
    return page('invalid_request', 'client_id and redirect_uri may occur only once')
  const client = await findClient(one(parameters, 'client_id'), clients)
  if (client instanceof OAuthError) return { kind: 'page', error: client }
  const given = one(parameters, 'redirect_uri')
  const [only, ...others] = client.redirectUris
  const redirectUri = given ?? (others.length === 0 ? only : undefined)
  if (redirectUri === undefined) return page('invalid_request', 'redirect_uri is missing')
  if (!isRegistered(redirectUri, client.redirectUris))
    return page('invalid_redirect_uri', 'redirect_uri is not registered for the client')
  const state = doubled.includes('state') ? undefined : one(parameters, 'state')
  const { id, kind, name } = client
  try {
    if (doubled.length > 0) throw new OAuthError('invalid_request', `${doubled.join(', ')} may occur only once`)
    if (!client.grantTypes.includes('authorization_code'))
      throw new OAuthError('unauthorized_client', 'the client is not registered for the authorization code grant')
    const { isSilent, ...rest } = readParameters(parameters, resources)
    const isRedirectGiven = given !== undefined
    return {
      kind: 'login',
      isSilent,
      request: { client: { id, kind, name }, redirectUri, isRedirectGiven, state, ...rest },
    }
  } catch (error) {
    if (error instanceof OAuthError) return { kind: 'answer', client: { id, kind, name }, redirectUri, state, error }
    throw error
  }
}

const page = (...of: ConstructorParameters<typeof OAuthError>): RequestValidation => ({
  kind: 'page',
  error: new OAuthError(...of),
})

/** A parameter without a value counts as absent (RFC 6749 §3.1). */
const one = (parameters: URLSearchParams, name: string): string | undefined => parameters.get(name) || undefined

async function findClient(id: string | undefined, clients: ClientDirectory): Promise<Client | OAuthError> {
  if (id === undefined) return new OAuthError('invalid_request', 'client_id is missing')
  try {
    return (await clients.find(id)) ?? new OAuthError('invalid_client', 'unknown client')
  } catch (error) {
    if (error instanceof OAuthError) return error
    throw error
  }
}

type Read = Pick<LoginRequest, 'challenge' | 'scope' | 'notGranted' | 'resource' | 'mustAsk'> & {
  readonly isSilent: boolean
}

function readParameters(parameters: URLSearchParams, resources: ResourceNames): Read {
  for (const name of ['request', 'request_uri', 'registration'] as const)
    if (parameters.has(name)) throw new OAuthError(`${name}_not_supported`, `${name} is not supported`)
  const responseType = one(parameters, 'response_type')
  if (responseType === undefined) throw new OAuthError('invalid_request', 'response_type is missing')
  if (responseType !== 'code') throw new OAuthError('unsupported_response_type', 'response_type must be code')
  if ((one(parameters, 'response_mode') ?? 'query') !== 'query')
    throw new OAuthError('invalid_request', 'response_mode must be query')
  if ((one(parameters, 'state')?.length ?? 0) > MOST_STATE)
    throw new OAuthError('invalid_request', `state must have at most ${MOST_STATE} characters`)
  const challenge = readChallenge(parameters)
  const resource = readResource(parameters.getAll('resource').filter(Boolean), resources)
  const asked = readScope(one(parameters, 'scope'))
  // Scopes that the resource lacks are not granted; a request without scopes gets all of the resource (RFC 6749
  // §3.3).
  const scope = asked?.filter((name) => resource.scopes.includes(name) || name === OFFLINE_ACCESS) ?? [
    ...resource.scopes,
  ]
  const notGranted = asked?.filter((name) => !scope.includes(name)) ?? []
  const isKept = notGranted.length > 0 && notGranted.join(' ').length <= MOST_NOT_GRANTED
  const prompts = readPrompt(one(parameters, 'prompt'))
  return {
    challenge,
    scope,
    ...(isKept ? { notGranted } : {}),
    resource: resource.url,
    // With offline_access the prompt only satisfies OpenID Connect Core §11.
    mustAsk: prompts.includes('consent') && asked?.includes(OFFLINE_ACCESS) !== true,
    isSilent: prompts.includes('none'),
  }
}

function readChallenge(parameters: URLSearchParams): string {
  const challenge = one(parameters, 'code_challenge')
  if (challenge === undefined) throw new OAuthError('invalid_request', 'code_challenge is missing')
  if (one(parameters, 'code_challenge_method') !== 'S256')
    throw new OAuthError('invalid_request', 'code_challenge_method must be S256')
  if (!/^[A-Za-z0-9_-]{43}$/.test(challenge))
    throw new OAuthError('invalid_request', 'code_challenge is not an S256 challenge')
  return challenge
}

function readResource(
  indicators: readonly string[],
  resources: ResourceNames,
): { url: string; scopes: readonly string[] } {
  const [indicator, ...others] = indicators
  if (indicator === undefined) {
    if (resources.only === undefined) throw new OAuthError('invalid_target', 'resource is missing')
    return resources.only
  }
  const resource = resources.find(indicator)
  if (resource === undefined)
    throw new OAuthError('invalid_target', 'resource is not served by this authorization server')
  // Some clients repeat it (Codex).
  if (others.some((other) => resources.find(other)?.url !== resource.url))
    throw new OAuthError('invalid_target', 'only one resource is allowed')
  return resource
}

function readScope(scope: string | undefined): readonly string[] | undefined {
  if (scope === undefined) return undefined
  if (scope.length > MOST_SCOPE || !/^[\x20\x21\x23-\x5b\x5d-\x7e]*$/.test(scope))
    throw new OAuthError('invalid_scope', 'scope is malformed')
  const scopes = scopesIn(scope)
  return scopes.length === 0 ? undefined : scopes
}

function readPrompt(prompt: string | undefined): readonly string[] {
  const prompts = prompt?.split(' ').filter((one) => one !== '') ?? []
  if (prompts.includes('none') && prompts.length > 1)
    throw new OAuthError('invalid_request', 'prompt=none excludes other values')
  return prompts
}
