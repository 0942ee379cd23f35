import { applyCredential } from '../../apply/index.ts'
import { causeOf, type Credential, diagnoseConnection, OutboundError, type OutboundResponse } from '../../core/index.ts'
import { requestOnce } from '../../net/index.ts'
import { createForwarded } from '../../obtain/index.ts'
import { hasRoles, type ResolvedRoute } from '../../resources/index.ts'
import { checkConnection } from './connection.ts'
import { type CheckContext, STEP_MS } from './context.ts'
import { checkFile, checkPair, readable } from './files.ts'
import {
  DISCOVER,
  HANDSHAKE_REVISION,
  INITIALIZE,
  initialized,
  type McpRequest,
  type McpSession,
  readAnswer,
  serverOf,
  sessionHeaders,
  STATELESS_REVISION,
} from '../../mcp/index.ts'
import { about, type CheckResult } from './result.ts'
import { checkTools, namesTools, untested } from './tools.ts'

const MAX_ANSWER_BYTES = 4 * 1024 * 1024
/** Backends reject signatures at larger clock differences. */
const SIGNED_DIFFERENCE_MS = 60_000

/** Tests the files of `targetTls` and the connection to the backend. */
export async function checkTarget(
  { target, targetTls }: ResolvedRoute,
  context: CheckContext,
): Promise<{ readonly lines: readonly CheckResult[]; readonly isConnected: boolean }> {
  const nowMs = context.clock.now()
  const { caCertPath, clientCertFile, clientKeyFile, serverName, insecureSkipVerify } = targetTls ?? {}
  const lines =
    caCertPath === undefined
      ? []
      : checkFile({ holds: 'certificates', path: caCertPath }, 'targetTls.caCertPath', nowMs)
  if (clientCertFile !== undefined && clientKeyFile !== undefined)
    lines.push(...checkPair(clientCertFile, clientKeyFile, 'targetTls client', nowMs))
  const files = [caCertPath, clientCertFile, clientKeyFile].map((file) =>
    file === undefined ? undefined : readable(file),
  )
  if (lines.some(({ status }) => status === 'failed')) {
    const skipped = about('target.connection', target.host).skipped('not tried: a file of targetTls is unusable')
    return { lines: [...lines, skipped], isConnected: false }
  }
  const [ca, cert, key] = files
  const { lines: found, isConnected } = await checkConnection('target', target.origin, context, {
    ca,
    cert,
    key,
    serverName,
    insecureSkipVerify,
  })
  return { lines: [...lines, ...found], isConnected }
}

/** Sends `initialize`, and `server/discover` if the backend does not support it; then lists tools for the rules. */
export async function checkMcp(
  route: ResolvedRoute,
  credential: Credential,
  context: CheckContext,
): Promise<readonly CheckResult[]> {
  const { line, session } = await openSession(route, credential, context)
  if (session === undefined) return [line, ...untested(route, 'the backend does not speak MCP with this credential')]
  try {
    if (!namesTools(route)) return [line]
    if (!session.isStateless) await send(route, credential, initialized(session), context).catch(() => undefined)
    return [line, ...(await checkTools(route, session, (request) => ask(route, credential, request, context)))]
  } finally {
    await endSession(route, credential, session, context)
  }
}

async function openSession(
  route: ResolvedRoute,
  credential: Credential,
  context: CheckContext,
): Promise<{ readonly line: CheckResult; readonly session?: McpSession }> {
  const line = about('mcp', route.target.host)
  try {
    const first = await ask(route, credential, INITIALIZE, context)
    if (first.answer?.result !== undefined) {
      const { protocolVersion } = first.answer.result
      return {
        line: line.ok(`${serverOf(first.answer)} responds to initialize (${textOf(protocolVersion)})`),
        session: {
          version: typeof protocolVersion === 'string' ? protocolVersion.slice(0, 20) : HANDSHAKE_REVISION,
          id: first.response.headers['mcp-session-id'],
          isStateless: false,
        },
      }
    }
    if (isRefusal(first)) return { line: refused(line, first.response.status, credential) }
    const second = await ask(route, credential, DISCOVER, context)
    if (second.answer?.result !== undefined)
      return {
        line: line.ok(`${serverOf(second.answer)} responds to server/discover (${STATELESS_REVISION})`),
        session: { version: STATELESS_REVISION, id: undefined, isStateless: true },
      }
    if (isRefusal(second)) return { line: refused(line, second.response.status, credential) }
    return { line: noMcp(route, first, second) }
  } catch (error) {
    if (!(error instanceof OutboundError)) return { line: line.thrown(error) }
    const { code } = causeOf(error)
    const known = diagnoseConnection(error)
    const detail = `${error.kind}${code === undefined ? '' : ` (${code})`}`
    return {
      line: line.failed(
        `no response to initialize: ${detail}${known === undefined ? '' : `: ${known.cause}`}`,
        known?.remedy ?? 'Check the log of the backend; it may require a client certificate (targetTls).',
      ),
    }
  }
}

function refused(line: ReturnType<typeof about>, status: number, credential: Credential): CheckResult {
  return line.failed(
    `the backend rejects ${credential.kind === 'none' ? 'a request without a credential' : 'the credential'}: status ${status}`,
    credential.kind === 'none'
      ? 'Choose the type of external auth that this backend requires.'
      : credential.kind === 'aws'
        ? 'Check region, service and the permissions of the role.'
        : 'Check the value of the secret or token, and its permissions at the backend.',
  )
}

/** A response and its JSON-RPC message; undefined if it is not MCP. */
interface McpResponse {
  readonly response: OutboundResponse
  readonly answer: ReturnType<typeof readAnswer>
}

async function ask(
  route: ResolvedRoute,
  credential: Credential,
  request: McpRequest,
  context: CheckContext,
): Promise<McpResponse> {
  const response = await send(route, credential, request, context)
  const { status, headers, body } = response
  const answer = readAnswer(request, headers['content-type'] ?? '', body)
  const isSuccess = status >= 200 && status < 300
  // In an error status, clients accept only JSON-RPC errors.
  return { response, answer: isSuccess || answer?.errorCode !== undefined ? answer : undefined }
}

const isRefusal = ({ response: { status } }: McpResponse): boolean => status === 401 || status === 403

/** A server responds, but it is not an MCP server, or not at this path. */
function noMcp({ target }: ResolvedRoute, first: McpResponse, second: McpResponse): CheckResult {
  const line = about('mcp', target.host)
  const { status } = first.response
  const code = first.answer?.errorCode ?? second.answer?.errorCode
  const lacks = first.answer?.lacks ?? second.answer?.lacks
  const what = [
    `status ${status}`,
    ...(code === undefined ? [] : [`JSON-RPC error ${code}`]),
    ...(lacks === undefined ? [] : [`a JSON-RPC result without ${lacks}`]),
  ]
  // Without the query, which may contain a key.
  return line.failed(
    `${target.origin}${target.path} does not respond to initialize or server/discover: ${what.join(', ')}`,
    status === 404 || status === 405
      ? 'Correct the path of target: it has no MCP server.'
      : 'Set target to the URL of an MCP server with streamable HTTP.',
  )
}

function send(
  route: ResolvedRoute,
  credential: Credential,
  { headers, body }: McpRequest,
  context: CheckContext,
): Promise<OutboundResponse> {
  return exchange(route, credential, 'POST', headers, Buffer.from(body), context)
}

/** Closes the session opened for the test. An error here is not a failure. */
async function endSession(
  route: ResolvedRoute,
  credential: Credential,
  session: McpSession,
  context: CheckContext,
): Promise<void> {
  if (session.id === undefined) return
  await exchange(route, credential, 'DELETE', sessionHeaders(session), undefined, context).catch(() => undefined)
}

async function exchange(
  { name, target, timeouts, http2, targetTls, auth, headerForward }: ResolvedRoute,
  credential: Credential,
  method: 'POST' | 'DELETE',
  headers: Readonly<Record<string, string>>,
  bytes: Buffer | undefined,
  context: CheckContext,
): Promise<OutboundResponse> {
  const draft = {
    method,
    path: target.query === '' ? target.path : `${target.path}?${target.query}`,
    host: target.host,
    headers: ['host', target.host, ...Object.entries(headers).flat()],
    body: bytes === undefined ? ({ kind: 'none' } as const) : ({ kind: 'kept', bytes } as const),
    nowMs: context.clock.now(),
  }
  const forwarded = createForwarded(headerForward, context.obtain)?.current() ?? []
  for (const one of [...forwarded, credential]) applyCredential(draft, one)
  const pairs = Array.from({ length: draft.headers.length / 2 }, (_, index) =>
    draft.headers.slice(index * 2, index * 2 + 2),
  )
  const response = await requestOnce(
    {
      origin: target.origin,
      timeouts: { connect: timeouts.connect, firstByte: 0, idle: 0 },
      http2,
      targetTls,
      egressProxy: context.egressProxy,
    },
    {
      method,
      url: `${target.origin}${draft.path}`,
      headers: Object.fromEntries(pairs) as Record<string, string>,
      ...(bytes === undefined ? {} : { body: bytes }),
    },
    { deadlineMs: STEP_MS * 2, maxBytes: MAX_ANSWER_BYTES },
  )
  if (hasRoles(auth))
    context.times.note(`backend of ${name}`, response.headers['date'], context.clock.now(), SIGNED_DIFFERENCE_MS)
  return response
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value.slice(0, 20) : 'no version')
