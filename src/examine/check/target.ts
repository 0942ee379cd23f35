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
  type McpRequest,
  readAnswer,
  serverOf,
  STATELESS_REVISION,
} from '../../mcp/index.ts'
import { about, type CheckResult } from './result.ts'

const MAX_ANSWER_BYTES = 4 * 1024 * 1024
/** Backends refuse signatures of another time. */
const SIGNED_DIFFERENCE_MS = 60_000

/** The files of `targetTls`, and the connection to the backend. */
export async function checkTarget(
  { target, targetTls }: ResolvedRoute,
  context: CheckContext,
): Promise<{ readonly lines: readonly CheckResult[]; readonly stands: boolean }> {
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
    const skipped = about('target.connection', target.host).skipped('not tried: a file of targetTls cannot be used')
    return { lines: [...lines, skipped], stands: false }
  }
  const [ca, cert, key] = files
  const { lines: found, stands } = await checkConnection('target', target.origin, context, {
    ca,
    cert,
    key,
    serverName,
    insecureSkipVerify,
  })
  return { lines: [...lines, ...found], stands }
}

/** What the backend says to `initialize`, or to `server/discover` where it does not know that. */
export async function checkMcp(
  route: ResolvedRoute,
  credential: Credential,
  context: CheckContext,
): Promise<CheckResult> {
  const line = about('mcp', route.target.host)
  try {
    const first = await ask(route, credential, INITIALIZE, context)
    if (first.answer?.result !== undefined) {
      await endSession(route, credential, first.response, context)
      return line.ok(`${serverOf(first.answer)} answers initialize (${textOf(first.answer.result['protocolVersion'])})`)
    }
    if (isRefusal(first)) return refused(line, first.response.status, credential)
    const second = await ask(route, credential, DISCOVER, context)
    if (second.answer?.result !== undefined)
      return line.ok(`${serverOf(second.answer)} answers server/discover (${STATELESS_REVISION})`)
    if (isRefusal(second)) return refused(line, second.response.status, credential)
    return noMcp(route, first, second)
  } catch (error) {
    if (!(error instanceof OutboundError)) return line.thrown(error)
    const { code } = causeOf(error)
    const known = diagnoseConnection(error)
    const detail = `${error.kind}${code === undefined ? '' : ` (${code})`}`
    return line.failed(
      `no answer to initialize: ${detail}${known === undefined ? '' : `: ${known.cause}`}`,
      known?.remedy ?? 'Look at the log of the backend; does it ask for a client certificate (targetTls)?',
    )
  }
}

function refused(line: ReturnType<typeof about>, status: number, credential: Credential): CheckResult {
  return line.failed(
    `the backend refuses ${credential.kind === 'none' ? 'a request without a credential' : 'the credential'}: status ${status}`,
    credential.kind === 'none'
      ? 'Choose the type of external auth that this backend wants.'
      : credential.kind === 'aws'
        ? 'Look at region, service and the rights of the role.'
        : 'Look at the value of the secret or token, and at what it may do there.',
  )
}

/** What came back for a request, and what it says as MCP; undefined where that is nothing. */
interface Said {
  readonly response: OutboundResponse
  readonly answer: ReturnType<typeof readAnswer>
}

async function ask(
  route: ResolvedRoute,
  credential: Credential,
  request: McpRequest,
  context: CheckContext,
): Promise<Said> {
  const response = await send(route, credential, request, context)
  const { status, headers, body } = response
  const answer = readAnswer(request, headers['content-type'] ?? '', body)
  const isSuccess = status >= 200 && status < 300
  // Of an error status a client takes errors alone.
  return { response, answer: isSuccess || answer?.errorCode !== undefined ? answer : undefined }
}

const isRefusal = ({ response: { status } }: Said): boolean => status === 401 || status === 403

/** Somebody answers, and it is no MCP server, or not here. */
function noMcp({ target }: ResolvedRoute, first: Said, second: Said): CheckResult {
  const line = about('mcp', target.host)
  const { status } = first.response
  const code = first.answer?.errorCode ?? second.answer?.errorCode
  const lacks = first.answer?.lacks ?? second.answer?.lacks
  const what = [
    `status ${status}`,
    ...(code === undefined ? [] : [`JSON-RPC error ${code}`]),
    ...(lacks === undefined ? [] : [`a JSON-RPC result without ${lacks}`]),
  ]
  // Its query may hold a key.
  return line.failed(
    `${target.origin}${target.path} answers neither initialize nor server/discover: ${what.join(', ')}`,
    status === 404 || status === 405
      ? 'Correct the path of target: there is no MCP server at this one.'
      : 'Is target the address of an MCP server that speaks streamable HTTP?',
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

/** A session that was opened for the check is closed with it; that it can't be is no failure. */
async function endSession(
  route: ResolvedRoute,
  credential: Credential,
  { headers }: OutboundResponse,
  context: CheckContext,
): Promise<void> {
  const session = headers['mcp-session-id']
  if (session === undefined) return
  const own = { 'mcp-session-id': session, 'mcp-protocol-version': HANDSHAKE_REVISION }
  await exchange(route, credential, 'DELETE', own, undefined, context).catch(() => undefined)
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
