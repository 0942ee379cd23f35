import { Failure, asFailure, causeOf, type ClientRequest, type EndpointResponse, type Log } from '../core/index.ts'
import { challengeFor, checkHostHeader, originFormOf, registryFailureBody } from '../http/index.ts'
import { readJsonBody } from './body.ts'
import { jsonReply, jsonText, type OpsHandler, type Readiness } from './endpoint.ts'
import { checkAccess, checkOpenAccess, type AccessOptions } from './access.ts'

export interface DispatchOptions {
  readonly version: string
  readonly readiness: () => Readiness | Promise<Readiness>
  readonly metrics: () => Promise<string>
  /** Open endpoints also require a Host of this machine: the bind is a loopback address. */
  readonly checksHost: boolean
  readonly guarded: AccessOptions & { readonly endpoints: Readonly<Record<string, OpsHandler>> }
  readonly log: Log
}

type Open = () => EndpointResponse | Promise<EndpointResponse>

/** On every response of an endpoint; pages have more. */
const COMMON_HEADERS = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' }

const READ_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD'])
const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

function readinessAnswer({ ok, degraded, detail }: Readiness): EndpointResponse {
  const status = ok ? (degraded === true ? 'degraded' : 'ready') : 'unavailable'
  return jsonReply(ok ? 200 : 503, { status, ...(detail === undefined ? {} : { detail }) })
}

/** Maps `GET /config` to path and method. An invalid key throws at start. */
function indexByPath(endpoints: Readonly<Record<string, OpsHandler>>): Map<string, Map<string, OpsHandler>> {
  const byPath = new Map<string, Map<string, OpsHandler>>()
  for (const [key, handler] of Object.entries(endpoints)) {
    const [method, path, ...rest] = key.split(' ')
    if (method === undefined || path?.startsWith('/') !== true || rest.length > 0)
      throw new TypeError(`an endpoint is "METHOD /path", not ${JSON.stringify(key)}`)
    const methods = byPath.get(path) ?? new Map<string, OpsHandler>()
    methods.set(method, handler)
    byPath.set(path, methods)
  }
  return byPath
}

/** The `Allow` header of a resource. GET includes HEAD. */
const allowOf = (methods: Iterable<string>): string =>
  [...methods].flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ')

const ADMIN = { realm: 'extauth-admin', resourceMetadata: undefined, requiredScopes: [] }

/** A failure in the format of the admin listener, with its challenge. */
export function failureAnswer(failure: Failure, headers: Readonly<Record<string, string>> = {}): EndpointResponse {
  const challenge = challengeFor(failure, ADMIN)
  return jsonText(failure.status, registryFailureBody(failure), {
    ...headers,
    ...(challenge === undefined ? {} : { 'www-authenticate': challenge }),
  })
}

const notAllowed = (allow: string): EndpointResponse => failureAnswer(new Failure('method_not_allowed'), { allow })

/**
 * Responds to a request of the admin listener: `/health`, `/readiness`, `/version` and `/metrics` are open, other
 * endpoints are guarded. Never throws; failures become responses of the error table.
 */
export function createDispatch(options: DispatchOptions): (request: ClientRequest) => Promise<EndpointResponse> {
  const open: Readonly<Record<string, Open>> = {
    '/health': () => jsonReply(200, { status: 'ok' }),
    '/readiness': async () => readinessAnswer(await options.readiness()),
    '/version': () => jsonReply(200, { version: options.version }),
    '/metrics': async () => ({
      status: 200,
      headers: { 'content-type': METRICS_TYPE },
      body: await options.metrics(),
    }),
  }
  const guarded = indexByPath(options.guarded.endpoints)

  const answer = async (request: ClientRequest): Promise<EndpointResponse> => {
    const target = originFormOf(request.url, checkHostHeader(request))
    const queryAt = target.indexOf('?')
    const path = queryAt === -1 ? target : target.slice(0, queryAt)
    const { method } = request
    if (Object.hasOwn(open, path)) {
      const make = open[path]
      if (make === undefined || !READ_METHODS.has(method)) return notAllowed('GET, HEAD')
      checkOpenAccess(request, options.checksHost)
      return make()
    }
    const methods = guarded.get(path)
    if (methods === undefined) throw new Failure('not_found')
    // Checked first: unauthorized clients do not learn the methods.
    checkAccess(request, options.guarded)
    const handler = methods.get(method) ?? (method === 'HEAD' ? methods.get('GET') : undefined)
    if (handler === undefined) return notAllowed(allowOf(methods.keys()))
    const query = new URLSearchParams(queryAt === -1 ? '' : target.slice(queryAt + 1))
    const body = READ_METHODS.has(method) ? undefined : await readJsonBody(request)
    const reply = await handler({ method, query, ...(body === undefined ? {} : { body }) })
    return jsonReply(reply.status, reply.json)
  }

  const respond = async (request: ClientRequest): Promise<EndpointResponse> => {
    try {
      return await answer(request)
    } catch (error) {
      const failure = asFailure(error)
      if (failure.status >= 500) {
        const { code, detail, cause } = failure
        options.log.error({ code, detail, cause: causeOf(cause) }, 'admin request failed')
      }
      return failureAnswer(failure)
    }
  }
  return async (request) => {
    const response = await respond(request)
    return { ...response, headers: { ...response.headers, ...COMMON_HEADERS } }
  }
}
