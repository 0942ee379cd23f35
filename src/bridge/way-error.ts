import { CredentialRefusal, diagnoseConnection, FAILURES, type FailureCode, OutboundError } from '../core/index.ts'
import { errorResponse, type Id, WAY_ERROR } from '../mcp/index.ts'

/** Why a request has no answer of its server; `error.data.reason`, beside those of the server and of the pipeline. */
export type WayReason =
  | 'endpoint_unreachable'
  | 'endpoint_refused'
  | 'bad_answer'
  | 'stream_lost'
  | 'session_lost'
  | 'overloaded'
  | 'stopping'
  | CredentialRefusal['reason']
  | 'internal_error'

const ADVICE: Readonly<Record<WayReason, string>> = {
  endpoint_unreachable: 'Check that the server runs, the address, and the network; then ask again.',
  endpoint_refused: 'See the status and what the server says.',
  bad_answer: 'This is not what an MCP server answers; check that the address is that of its MCP endpoint.',
  stream_lost: 'The server may or may not have done it; look before you ask again.',
  session_lost: 'The server began a new session; it may or may not have done it. Ask again.',
  overloaded: 'Wait until some of the running requests are done.',
  stopping: 'Start the bridge again.',
  missing_token: 'Give the bridge a token with --token-file FILE or, with --url, let it log in with --login.',
  invalid_token: 'Put a new token into the file; it is read again for each request.',
  insufficient_scope: 'Ask for a token with the scopes that the message names.',
  login_failed: 'Ask again in a minute to log in once more, or run extauth login in a terminal.',
  internal_error: 'This is a fault of the bridge; report it with its log.',
}

/** What to do about a status. */
function adviceOn(status: unknown): string | undefined {
  if (status === 403)
    return 'The server refuses this caller or this request: check its permissions (roles, scopes, policies), and for AWS the region and the service of the configuration.'
  if (status === 404) return 'Check the address of the MCP endpoint.'
  if (status === 429) return 'Ask again later, and less often.'
  return typeof status === 'number' && status >= 500
    ? 'This is an error of the server: ask again later, or see its log.'
    : undefined
}

/** The way to the server failed. `said` continues the sentence "The MCP server … "; what it quotes of the server is masked and short. */
export class WayError extends Error {
  readonly reason: WayReason
  readonly said: string
  readonly data: Readonly<Record<string, unknown>>

  constructor(
    reason: WayReason,
    said: string,
    options: { readonly cause?: unknown; readonly data?: Readonly<Record<string, unknown>> } = {},
  ) {
    super(`${reason}: ${said}`, { cause: options.cause })
    this.name = 'WayError'
    this.reason = reason
    this.said = said
    this.data = options.data ?? {}
  }
}

/** What came can't be read as an answer, or its header section is too large. */
function isParserError(error: OutboundError): boolean {
  const { name, code } = Object(error.cause) as { name?: unknown; code?: unknown }
  return name === 'HTTPParserError' || code === 'UND_ERR_HEADERS_OVERFLOW'
}

/** Whatever went wrong, as what the client is told: the answer to the request with this id, as a line. */
export function wayResponse(id: Id, error: unknown, server: string): Buffer {
  const { reason, message, remedy = ADVICE[reason], data } = told(error, server)
  return errorResponse(id, {
    code: WAY_ERROR,
    message: `${message} ${remedy}`,
    data: { reason, ...data },
  })
}

function told(
  error: unknown,
  server: string,
): { reason: WayReason; message: string; remedy?: string | undefined; data?: Readonly<Record<string, unknown>> } {
  const sentence = (said: string): string => `The MCP server ${server} ${said}${/[.!?]$/.test(said) ? '' : '.'}`
  if (error instanceof WayError) {
    const { reason, said, data } = error
    const remedy = reason === 'endpoint_refused' ? adviceOn(data['status']) : undefined
    return { reason, message: sentence(said), data, ...(remedy === undefined ? {} : { remedy }) }
  }
  if (error instanceof CredentialRefusal) return { reason: error.reason, message: error.message }
  if (error instanceof OutboundError) {
    const code = codeOf(error)
    if (isParserError(error))
      return { reason: 'bad_answer', message: sentence('gave an answer that is not HTTP as it should be') }
    if (error.isSent) return { reason: 'stream_lost', message: sentence('ended the connection before it answered') }
    const known = diagnoseConnection(error)
    const said = `${error.kind === 'timeout' ? 'does not answer in time' : 'cannot be reached'}${known === undefined ? '' : `: ${known.cause}`}`
    return {
      reason: 'endpoint_unreachable',
      message: sentence(code === undefined ? said : `${said} (${code})`),
      remedy: known === undefined ? undefined : `${known.remedy} Then ask again.`,
    }
  }
  return { reason: 'internal_error', message: 'The bridge failed.' }
}

/** For a log: the reason that the client is told, without the sentence. */
export const reasonOf = (error: unknown): WayReason => told(error, '').reason

/** A code such as ECONNREFUSED, of the error or of what is behind it; never a text. */
export function codeOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined
  const { code, cause } = error as { code?: unknown; cause?: unknown }
  return typeof code === 'string' && /^[A-Z][A-Z0-9_]{2,60}$/.test(code) ? code : codeOf(cause)
}

/** What to do about a reason that the proxy gives; undefined for reasons of others. */
export const remedyOf = (reason: unknown): string | undefined =>
  typeof reason === 'string' && Object.hasOwn(FAILURES, reason) ? FAILURES[reason as FailureCode].remedy : undefined
