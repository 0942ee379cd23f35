import { asFailure, type ClientRequest, type EndpointResponse, Failure } from '../core/index.ts'
import { checkHostHeader, checkPath, checkQuery, checkTokenInTarget, originFormOf } from '../http/index.ts'
import type { Refusal } from '../listen/index.ts'
import { ALLOWED_METHODS, COMMON_HEADERS, failureBody, failureHeaders, failureResponse } from './answer.ts'

/** The only location of an encoded slash: within a server name (decisions §2.8). */
const SERVER_NAME_SEGMENT = /^(\/registry\/[^/]+\/v0(?:\.1)?\/servers\/[^/%]+)%2f([^/%]+\/versions(?:\/[^/]+)?)$/i

const READ_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD'])

/** A day: the allowed methods never change in a process. */
const PREFLIGHT_SECONDS = '86400'

function optionsResponse({ headers }: ClientRequest): EndpointResponse {
  const isPreflight = headers['access-control-request-method'] !== undefined
  const preflight = {
    'access-control-allow-methods': ALLOWED_METHODS,
    'access-control-allow-headers': 'Authorization, Content-Type, If-None-Match, MCP-Protocol-Version, X-Request-Id',
    'access-control-max-age': PREFLIGHT_SECONDS,
  }
  return {
    status: 204,
    headers: { ...COMMON_HEADERS, allow: ALLOWED_METHODS, ...(isPreflight ? preflight : undefined) },
    body: '',
  }
}

/** Rejects ambiguous targets and tokens in the query (decisions §2.2, §2.8). Converts absolute-form to origin-form. */
function checkTarget(request: ClientRequest): string {
  const target = originFormOf(request.url, checkHostHeader(request))
  const mark = target.indexOf('?')
  const path = mark === -1 ? target : target.slice(0, mark)
  checkPath(path.replace(SERVER_NAME_SEGMENT, '$1$2'))
  if (mark === -1) return target
  const query = target.slice(mark + 1)
  checkQuery(query)
  checkTokenInTarget('', query, [])
  return target
}

/**
 * Looks at a request before it is routed: gives its target in origin-form when it may go on, and its response otherwise. Answers
 * 400 to ambiguous paths and to tokens in the query, preflights (which carry no credentials and show nothing), and 405 to
 * everything but GET and HEAD: nothing here can be written. `challengeOf` gives the challenge for a failure, if it calls for one.
 */
export function admit(
  request: ClientRequest,
  challengeOf: (failure: Failure) => string | undefined,
): string | EndpointResponse {
  try {
    const { method, url } = request
    if (method === 'OPTIONS' && url === '*') return optionsResponse(request)
    const target = checkTarget(request)
    if (READ_METHODS.has(method)) return target
    if (method !== 'OPTIONS') throw new Failure('method_not_allowed')
    return optionsResponse(request)
  } catch (error) {
    const failure = asFailure(error)
    return failureResponse(failure, challengeOf(failure))
  }
}

/** Response to a client whose bytes are invalid HTTP: the same format as all failures. */
export function refusalOf(failure: Failure): Refusal {
  return { headers: { ...COMMON_HEADERS, ...failureHeaders(failure, undefined) }, body: failureBody(failure) }
}
