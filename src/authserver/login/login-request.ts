import { isRegistered } from '../clients/redirect-uri.ts'
import type { Client } from '../clients/client.ts'
import type { ClientDirectory } from '../clients/directory.ts'
import { scopesIn } from '../../oauth/index.ts'
import { OAuthError } from '../oauth-error.ts'
import { OFFLINE_ACCESS, type ResourceNames } from '../resource-names.ts'

/** An authorization request that passed every check: what the user is asked about, and what the code will stand for. */
export interface LoginRequest {
  readonly client: Pick<Client, 'id' | 'kind' | 'name'>
  readonly redirectUri: string
  readonly isRedirectGiven: boolean
  readonly state: string | undefined
  readonly challenge: string
  readonly scope: readonly string[]
  /** What was requested besides: a refresh may repeat it (RFC 6749 §6). */
  readonly notGranted?: readonly string[]
  /** URL of the resource as it is configured. */
  readonly resource: string
  /** Consent that is remembered does not count (`prompt=consent`). */
  readonly mustAsk: boolean
}

/** `login`: go on. `page`: nothing is redirected, because nobody knows to whom. `answer`: the client is told. */
export type Judgement =
  | { readonly kind: 'login'; readonly request: LoginRequest; readonly isSilent: boolean }
  | { readonly kind: 'page'; readonly error: OAuthError }
  | {
      readonly kind: 'answer'
      readonly client: LoginRequest['client']
      readonly redirectUri: string
      readonly state: string | undefined
      readonly error: OAuthError
    }

/** Longest query of an authorization request, in characters; what comes of it has to fit in a URL again. */
const MOST_QUERY = 8_192
const MOST_STATE = 2_048
const MOST_SCOPE = 2_048
/** Characters of scopes that are not granted and yet kept. */
const MOST_NOT_GRANTED = 512

/** Parameters that count at most once (RFC 6749 §3.1); `resource` is judged by itself. */
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
 * Judges an authorization request before anything is spent (authserver.md §3; RFC 6749 §4.1.2.1, RFC 7636 §4.4.1, RFC 8707 §2).
 * Throws `Failure` when the client can't be looked up now.
 */
export async function judgeRequest(
  query: string,
  { clients, resources }: { readonly clients: ClientDirectory; readonly resources: ResourceNames },
): Promise<Judgement> {
  if (query.length > MOST_QUERY) return page('invalid_request', 'the request is too long')
  const parameters = new URLSearchParams(query)
  const doubled = SINGLE.filter((name) => parameters.getAll(name).length > 1)
  if (doubled.includes('client_id') || doubled.includes('redirect_uri'))
    return page('invalid_request', 'client_id and redirect_uri may be there once')
  const client = await findClient(one(parameters, 'client_id'), clients)
  if (client instanceof OAuthError) return { kind: 'page', error: client }
  const given = one(parameters, 'redirect_uri')
  const [only, ...others] = client.redirectUris
  const redirectUri = given ?? (others.length === 0 ? only : undefined)
  if (redirectUri === undefined) return page('invalid_request', 'redirect_uri is missing')
  if (!isRegistered(redirectUri, client.redirectUris))
    return page('invalid_redirect_uri', 'redirect_uri is not one that the client has registered')
  const state = doubled.includes('state') ? undefined : one(parameters, 'state')
  const { id, kind, name } = client
  try {
    if (doubled.length > 0) throw new OAuthError('invalid_request', `${doubled.join(', ')} may be there once`)
    if (!client.grantTypes.includes('authorization_code'))
      throw new OAuthError('unauthorized_client', 'the client has not registered the grant for codes')
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

const page = (...of: ConstructorParameters<typeof OAuthError>): Judgement => ({
  kind: 'page',
  error: new OAuthError(...of),
})

/** A parameter without a value counts as absent (RFC 6749 §3.1). */
const one = (parameters: URLSearchParams, name: string): string | undefined => parameters.get(name) || undefined

async function findClient(id: string | undefined, clients: ClientDirectory): Promise<Client | OAuthError> {
  if (id === undefined) return new OAuthError('invalid_request', 'client_id is missing')
  try {
    return (await clients.find(id)) ?? new OAuthError('invalid_client', 'the client is not known here')
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
  // What no resource has is not granted; a request that names nothing gets what the resource has (RFC 6749 §3.3).
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
    // Beside offline_access it is only what OpenID Connect Core §11 wants to see there.
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
    throw new OAuthError('invalid_target', 'resource is not served with this authorization server')
  // Clients repeat it (Codex).
  if (others.some((other) => resources.find(other)?.url !== resource.url))
    throw new OAuthError('invalid_target', 'resource may name one resource')
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
    throw new OAuthError('invalid_request', 'prompt=none goes with nothing else')
  return prompts
}
