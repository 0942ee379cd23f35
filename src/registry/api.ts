import { randomUUID } from 'node:crypto'
import { parse as parseQuery } from 'node:querystring'
import { unverifiedIn } from '../authenticate/index.ts'
import {
  asFailure,
  type Caller,
  type ClientRequest,
  type EndpointResponse,
  Failure,
  type Log,
  type Metrics,
  monotonicNow,
  refusedFrom,
  type RefusedFrom,
} from '../core/index.ts'
import { authorizationOf, authorize, challengeOf, pathOf, queryOf, type AccessPolicy } from './access.ts'
import { COMMON_HEADERS, failureBody, failureHeaders, JSON_TYPE, matchesEtag } from './answer.ts'
import { NOT_FOUND, PARAMETER_HINTS } from './api-schema.ts'
import { type Endpoint, ENDPOINTS } from './endpoints.ts'
import { openApiDocument } from './openapi.ts'
import type { RegistryData } from './registry-data.ts'
import { createRequestLog } from './request-log.ts'

export interface ApiOptions {
  readonly registries: ReadonlyMap<string, Pick<RegistryData, 'state'>>
  /** Path → JSON of the discovery documents, read for each request. */
  readonly documents: () => ReadonlyMap<string, string>
  readonly access: AccessPolicy
  /** Version of this program, for the OpenAPI document. */
  readonly version: string
  readonly log: Log
  readonly metrics: Metrics
  /** Default: a random UUID. */
  readonly requestId?: () => string
  /** Whether log lines of rejected requests have the client's address. Default true. */
  readonly logsClients?: boolean | undefined
}

/** Responds to a request that passed `admit`, with its target in origin-form. Never throws or rejects. */
export type Api = (request: ClientRequest, target: string) => EndpointResponse | Promise<EndpointResponse>

/** A matched route with its path parameters. */
interface Matched {
  /** Pattern for `authorize`, metrics and the log. */
  readonly route: string
  readonly params: Readonly<Record<string, string>>
  readonly endpoint?: Endpoint
}

const RESOURCE_METADATA = '/.well-known/oauth-protected-resource'
/** `v0` is the former name of the same API. */
const VERSIONS: ReadonlySet<string> = new Set(['v0.1', 'v0'])

/**
 * The route of a path, or undefined. Decodes each segment once: `admit` has rejected ambiguous paths. Throws
 * `bad_request` for an invalid percent-encoding.
 */
function match(path: string): Matched | undefined {
  const segments = path.split('/').map(decode)
  const [, first, name, version = '', servers, ...rest] = segments
  if (segments.length === 2 && first === 'openapi.json') return { route: '/openapi.json', params: {} }
  if (segments.length > 2 && first === '.well-known')
    return { route: path === RESOURCE_METADATA ? path : '/.well-known/*', params: {} }
  if (first !== 'registry' || servers !== 'servers' || !VERSIONS.has(version)) return undefined
  const endpoint = ENDPOINTS[rest.length === 0 ? 0 : rest[1] === 'versions' ? rest.length - 1 : -1]
  if (endpoint === undefined) return undefined
  const params = Object.entries({ name, serverName: rest[0], version: rest[2] }).filter(
    ([, value]) => value !== undefined,
  )
  return {
    route: `/registry/:name/${version}/servers${endpoint.path}`,
    params: Object.fromEntries(params) as Record<string, string>,
    endpoint,
  }
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    throw new Failure('bad_request', { detail: 'the path has an invalid percent-encoding' })
  }
}

/** A 400 with a hint about the parameter. */
class BadParameter extends Failure {
  readonly parameter: string

  constructor(parameter: string) {
    super('bad_request', { detail: 'invalid parameter' })
    this.parameter = parameter
  }
}

/** Parses the query by the endpoint's schema. Parameters without a value count as absent. */
function readQuery({ query }: Endpoint, text: string): unknown {
  const given = Object.entries(parseQuery(text)).filter(([, value]) => value !== '')
  const result = query.safeParse(Object.fromEntries(given))
  if (!result.success) throw new BadParameter(String(result.error.issues[0]?.path[0] ?? ''))
  return result.data
}

function hintOf(failure: Failure, matched: Matched | undefined): string | undefined {
  if (failure.code === 'not_found') return matched?.endpoint === undefined ? undefined : NOT_FOUND
  if (!(failure instanceof BadParameter)) return undefined
  return Object.hasOwn(PARAMETER_HINTS, failure.parameter) ? PARAMETER_HINTS[failure.parameter] : undefined
}

const json = (body: string): EndpointResponse => ({ status: 200, headers: { 'content-type': JSON_TYPE }, body })

/**
 * The registry API (published MCP registry API v0.1) and the open documents. Requests must have passed `admit`: this
 * authenticates the caller and parses parameters, but does not validate the path.
 */
export function createApi(options: ApiOptions): Api {
  const { access, registries, documents, requestId = randomUUID } = options
  const record = createRequestLog(options.log, options.metrics)
  let openApi: string | undefined

  const answer = (request: ClientRequest, target: string, matched: Matched | undefined): EndpointResponse => {
    if (matched === undefined) throw new Failure('not_found')
    const { route, params, endpoint } = matched
    if (route === '/openapi.json') return json((openApi ??= openApiDocument(options.version, access.mode === 'oauth')))
    if (endpoint === undefined) {
      const document = documents().get(pathOf(target))
      if (document === undefined) throw new Failure('not_found')
      return json(document)
    }
    if (!endpoint.params.safeParse(params).success) throw new BadParameter('')
    const query = readQuery(endpoint, queryOf(target))
    const registry = registries.get(params['name'] ?? '')
    if (registry === undefined) throw new Failure('not_found')
    const { snapshot } = registry.state()
    if (snapshot === undefined) throw new Failure('registry_unavailable')
    const body = endpoint.render(snapshot, params, query)
    if (body === undefined) throw new Failure('not_found')
    // The data may change at any time: clients must revalidate copies by entity tag (RFC 9110 §13.1.2).
    const etag = `"${snapshot.revision}"`
    const headers = { 'cache-control': 'no-cache', etag }
    if (matchesEtag(request.headers['if-none-match'], etag)) return { status: 304, headers, body: '' }
    return { status: 200, headers: { ...headers, 'content-type': JSON_TYPE }, body }
  }

  return (request, target) => {
    const id = requestId()
    const startedMs = monotonicNow()
    let matched: Matched | undefined

    const respond = (response: EndpointResponse, caller: Caller | undefined, failure?: Failure): EndpointResponse => {
      const { method } = request
      const { status, headers } = response
      const elapsedMs = monotonicNow() - startedMs
      const from = failure === undefined ? undefined : origin(request, target, caller, failure, options)
      record({ id, method, route: matched?.route, status, elapsedMs, caller, failure, from })
      return { ...response, headers: { ...COMMON_HEADERS, 'x-request-id': id, ...headers } }
    }
    const fail = (error: unknown, caller?: Caller): EndpointResponse => {
      const failure = asFailure(error)
      const headers = failureHeaders(failure, challengeOf(access, failure))
      const body = failureBody(failure, hintOf(failure, matched))
      return respond({ status: failure.status, headers, body }, caller, failure)
    }
    const serve = (caller: Caller): EndpointResponse => {
      let response: EndpointResponse
      try {
        response = answer(request, target, matched)
      } catch (error) {
        return fail(error, caller)
      }
      return respond(response, caller)
    }

    try {
      matched = match(pathOf(target))
      const known = authorize(access, { raw: request, target, route: matched?.route, params: matched?.params })
      return known instanceof Promise ? known.then(serve, (error: unknown) => fail(error)) : serve(known)
    } catch (error) {
      return fail(error)
    }
  }
}

/** Client address of a rejected request, for the log. */
function origin(
  request: ClientRequest,
  target: string,
  caller: Caller | undefined,
  { status }: Failure,
  { access, logsClients = true }: Pick<ApiOptions, 'access' | 'logsClients'>,
): RefusedFrom | undefined {
  const client = access.mode === 'oauth' ? access.peerOf(request) : request.socket.remoteAddress
  return refusedFrom(status, {
    client: logsClients ? client : undefined,
    userAgent: request.headers['user-agent'],
    path: pathOf(target),
    unverified: caller === undefined ? unverifiedIn(authorizationOf(request)) : undefined,
  })
}
