import { CredentialRefusal, diagnoseConnection, FAILURES, type FailureCode, OutboundError } from '../core/index.ts'
import { errorResponse, type Id, CONNECTION_ERROR } from '../mcp/index.ts'

/** Why a request has no response of its server: `error.data.reason`. Servers and the pipeline add reasons. */
export type BridgeReason =
  | 'endpoint_unreachable'
  | 'endpoint_refused'
  | 'bad_answer'
  | 'stream_lost'
  | 'session_lost'
  | 'overloaded'
  | 'stopping'
  | CredentialRefusal['reason']
  | 'internal_error'

const REMEDIES: Readonly<Record<BridgeReason, string>> = {
  endpoint_unreachable: 'Check the server, its URL and the network, then retry.',
  endpoint_refused: 'See the status and the message of the server.',
  bad_answer: 'This is not an MCP response; check that the URL is an MCP endpoint.',
  stream_lost: 'The request may have been executed; check before you retry.',
  session_lost: 'The session was renewed; the request may have been executed. Check, then retry.',
  overloaded: 'Wait for running requests to complete.',
  stopping: 'Restart the bridge.',
  missing_token: 'Set --token-file FILE or, with --url, --login.',
  invalid_token: 'Write a new token to the file; it is read for each request.',
  insufficient_scope: 'Request a token with the scopes in the message.',
  login_failed: 'Retry in a minute to log in again, or run extauth login in a terminal.',
  internal_error: 'This is a bug in the bridge; report it with its log.',
}

/** Remedy for a status. */
function remedyOfStatus(status: unknown): string | undefined {
  if (status === 403)
    return 'The server rejects this caller or request: check permissions (roles, scopes, policies) and, for AWS, region and service.'
  if (status === 404) return 'Check the URL of the MCP endpoint.'
  if (status === 429) return 'Retry later, and less often.'
  return typeof status === 'number' && status >= 500
    ? 'Server error: retry later, or see the log of the server.'
    : undefined
}

/**
 * A request to the server failed. `problem` continues "The MCP server … "; quoted text of the server is masked and
 * short.
 */
export class BridgeError extends Error {
  readonly reason: BridgeReason
  readonly problem: string
  readonly data: Readonly<Record<string, unknown>>

  constructor(
    reason: BridgeReason,
    problem: string,
    options: { readonly cause?: unknown; readonly data?: Readonly<Record<string, unknown>> } = {},
  ) {
    super(`${reason}: ${problem}`, { cause: options.cause })
    this.name = 'BridgeError'
    this.reason = reason
    this.problem = problem
    this.data = options.data ?? {}
  }
}

/** The response is not valid HTTP, or its headers are too large. */
function isParserError(error: OutboundError): boolean {
  const { name, code } = Object(error.cause) as { name?: unknown; code?: unknown }
  return name === 'HTTPParserError' || code === 'UND_ERR_HEADERS_OVERFLOW'
}

/** Renders any error as the JSON-RPC response to a request, as a line. */
export function errorResponseFor(id: Id, error: unknown, server: string): Buffer {
  const { reason, message, remedy = REMEDIES[reason], data } = describe(error, server)
  return errorResponse(id, {
    code: CONNECTION_ERROR,
    message: `${message} ${remedy}`,
    data: { reason, ...data },
  })
}

function describe(
  error: unknown,
  server: string,
): { reason: BridgeReason; message: string; remedy?: string | undefined; data?: Readonly<Record<string, unknown>> } {
  const sentence = (problem: string): string =>
    `The MCP server ${server} ${problem}${/[.!?]$/.test(problem) ? '' : '.'}`
  if (error instanceof BridgeError) {
    const { reason, problem, data } = error
    const remedy = reason === 'endpoint_refused' ? remedyOfStatus(data['status']) : undefined
    return { reason, message: sentence(problem), data, ...(remedy === undefined ? {} : { remedy }) }
  }
  if (error instanceof CredentialRefusal) return { reason: error.reason, message: error.message }
  if (error instanceof OutboundError) {
    const code = codeOf(error)
    if (isParserError(error)) return { reason: 'bad_answer', message: sentence('returned an invalid HTTP response') }
    if (error.isSent) return { reason: 'stream_lost', message: sentence('closed the connection before its response') }
    const known = diagnoseConnection(error)
    const problem = `${error.kind === 'timeout' ? 'does not respond in time' : 'is unreachable'}${known === undefined ? '' : `: ${known.cause}`}`
    return {
      reason: 'endpoint_unreachable',
      message: sentence(code === undefined ? problem : `${problem} (${code})`),
      remedy: known === undefined ? undefined : `${known.remedy} Then retry.`,
    }
  }
  return { reason: 'internal_error', message: 'The bridge failed.' }
}

/** The reason for the client, for the log. */
export const reasonOf = (error: unknown): BridgeReason => describe(error, '').reason

/** Code of the error or its cause, such as ECONNREFUSED. Never free text. */
export function codeOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined
  const { code, cause } = error as { code?: unknown; cause?: unknown }
  return typeof code === 'string' && /^[A-Z][A-Z0-9_]{2,60}$/.test(code) ? code : codeOf(cause)
}

/** Remedy for a reason of the proxy; undefined for others. */
export const remedyOf = (reason: unknown): string | undefined =>
  typeof reason === 'string' && Object.hasOwn(FAILURES, reason) ? FAILURES[reason as FailureCode].remedy : undefined
