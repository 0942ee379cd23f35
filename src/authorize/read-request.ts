import {
  type ClientRequest,
  type Claims,
  Failure,
  type ListField,
  type McpKind,
  type McpView,
  NO_CLAIMS,
  NO_REQUEST,
  type RequestView,
  type RuleCode,
} from '../core/index.ts'
import { foldedNames, type FoldedNames, headerLines, isInOtherCase, isUtf8Json, readJsonObject } from '../http/index.ts'
import { isObject, messageOf, namedIn, type Params, revisionOf, textOfHeader } from '../mcp/index.ts'

/** JSON depth of a body that is evaluated. */
const MAX_DEPTH = 64
/** JSON-RPC error code for headers that differ from the body (MCP 2026-07-28). */
const HEADER_MISMATCH = -32_020
/** A request without a message, or a response of the client. */
const noMessage = (): RequestView => ({ mcp: NO_REQUEST, subjects: [], id: undefined, list: undefined })

const LISTS: Readonly<Record<string, ListField>> = {
  'tools/list': 'tools',
  'prompts/list': 'prompts',
  'resources/list': 'resources',
  'resources/templates/list': 'resourceTemplates',
}

/** What a message is about that no rule restricts: the handshake, and what follows a request that was let through. */
const NEVER_EVALUATED: ReadonlySet<string> = new Set([
  'initialize',
  'notifications/initialized',
  'ping',
  'server/discover',
  'notifications/cancelled',
  'notifications/progress',
  'logging/setLevel',
])

/** Fields by which requests are evaluated: in another case, some readers take them for these. */
const ENVELOPE_FIELDS = foldedNames(['jsonrpc', 'id', 'method', 'params', 'result', 'error'])
const PARAMS_FIELDS = foldedNames(['name', 'arguments', 'uri', 'ref', 'taskId', 'notifications', 'task', '_meta'])
const REF_FIELDS = foldedNames(['type', 'name', 'uri'])
const LISTEN_FIELDS = foldedNames(['resourceSubscriptions', 'taskIds'])

/** What is known of calls and tools beside the request. */
export interface ReadContext {
  /** Hints of a tool from the last list; empty where there are none. */
  readonly annotationsOf: (tool: string) => Claims
  /** The call that created a task of this caller; undefined for an unknown one. */
  readonly taskOf: (id: string) => McpView | undefined
}

const refused = (rule: RuleCode, rpcCode?: number): Failure => new Failure('bad_request', { rule, rpcCode })

/** Refuses before its body is read what could be understood in two ways. Throws `bad_request`. */
export function admitRequest(method: string, request: ClientRequest): void {
  const has = (name: string): readonly string[] => headerLines(request.rawHeaders, name)
  if (has('mcp-method').length > 1 || has('mcp-name').length > 1) throw refused('mcp_header_repeated', HEADER_MISMATCH)
  const hasBody =
    request.headers['transfer-encoding'] !== undefined || Number(request.headers['content-length'] ?? 0) > 0
  if (method !== 'POST') {
    // Bodies of other methods are not evaluated, so none is sent on.
    if (hasBody || !['GET', 'HEAD', 'DELETE'].includes(method)) throw refused('mcp_method')
    return
  }
  const [type = '', ...more] = has('content-type')
  if (more.length > 0 || !isUtf8Json(type)) throw refused('mcp_media_type')
  const codings = has('content-encoding')
  if (codings.some((coding) => coding.trim().toLowerCase() !== 'identity')) throw refused('mcp_encoding')
}

/**
 * The one JSON-RPC message of a POST. Throws `bad_request` for what two readers could understand differently: duplicate
 * fields (by case, too), fields in another case, a batch, headers that differ from the body, and text that is not UTF-8.
 */
export function readRequest(request: ClientRequest, body: Buffer | undefined, context: ReadContext): RequestView {
  if (request.method !== 'POST') return noMessage()
  return readMessage(body, context, (method, params) => compareHeaders(request, method, params))
}

/** The same of a message alone; `onSubject` is called with its method and parameters. */
export function readMessage(
  body: Buffer | undefined,
  context: ReadContext,
  onSubject: (method: string, params: Params) => void = () => undefined,
): RequestView {
  const value = body === undefined ? undefined : readJsonObject(body, STRICT)
  if (body === undefined || value === undefined) throw refused('mcp_json')
  expectExact(value, ENVELOPE_FIELDS)
  const message = messageOf(value, body)
  if (message.kind === 'malformed') throw refused('mcp_message')
  if (message.kind === 'response') {
    onSubject('', {})
    return noMessage()
  }
  const { method, params } = message
  if (value['params'] !== undefined && !isObject(value['params'])) throw refused('mcp_params')
  expectExact(params, PARAMS_FIELDS)
  onSubject(method, params)
  const mcp = viewOf(method, params, context)
  return {
    mcp,
    subjects: NEVER_EVALUATED.has(method) ? [] : subjectsOf(mcp, params, context),
    id: message.kind === 'request' ? message.id : undefined,
    list: Object.hasOwn(LISTS, method) ? LISTS[method] : undefined,
  }
}

const STRICT = { maxDepth: MAX_DEPTH, caseInsensitiveIn: 'params', wellFormed: true }

/** Some readers of JSON ignore case: a field that differs from a known one by case only is taken for it there. */
function expectExact(object: Readonly<Record<string, unknown>>, known: FoldedNames): void {
  for (const name of Object.keys(object)) if (isInOtherCase(known, name)) throw refused('mcp_field_case')
}

function compareHeaders(request: ClientRequest, method: string, params: Params): void {
  const [sentMethod] = headerLines(request.rawHeaders, 'mcp-method')
  const [sentName] = headerLines(request.rawHeaders, 'mcp-name')
  const name = namedIn(method, params)
  // Servers must refuse them, and their answer to a list request would be replaced.
  const isRequired = revisionOf(request.headers['mcp-protocol-version'])?.lifecycle === 'stateless'
  const isMissing = (sent: string | undefined, expected = ''): boolean =>
    isRequired && expected !== '' && sent === undefined
  if (isMissing(sentMethod, method) || isMissing(sentName, name)) throw refused('mcp_header_missing', HEADER_MISMATCH)
  const differs = (sent: string | undefined, expected: string): boolean =>
    sent !== undefined && textOfHeader(sent.trim()) !== expected
  if (differs(sentMethod, method) || differs(sentName, name ?? ''))
    throw refused('mcp_header_mismatch', HEADER_MISMATCH)
}

function viewOf(method: string, params: Params, { annotationsOf, taskOf }: ReadContext): McpView {
  const view = (
    kind: McpKind,
    name: string,
    uri: string,
    args: Claims = NO_CLAIMS,
    annotations: Claims = NO_CLAIMS,
  ): McpView => Object.freeze({ method, kind, name, uri, args, annotations })
  switch (method) {
    case 'tools/call': {
      const name = textOf(params['name'])
      return view('tool', name, '', argumentsOf(params), annotationsOf(name))
    }
    case 'prompts/get':
      return view('prompt', textOf(params['name']), '', argumentsOf(params))
    case 'resources/read':
    case 'resources/subscribe':
    case 'resources/unsubscribe':
      return view('resource', '', textOf(params['uri']))
    case 'completion/complete': {
      const { ref } = params
      if (!isObject(ref)) throw refused('mcp_params')
      expectExact(ref, REF_FIELDS)
      if (ref['type'] === 'ref/prompt' && ref['uri'] === undefined) return view('prompt', textOf(ref['name']), '')
      if (ref['type'] === 'ref/resource' && ref['name'] === undefined) return view('resource', '', textOf(ref['uri']))
      throw refused('mcp_params')
    }
    default: {
      const id = params['taskId']
      const created = method.startsWith('tasks/') && typeof id === 'string' ? taskOf(id) : undefined
      return created === undefined ? view('other', '', '') : created
    }
  }
}

/** What rules decide on. A task that is unknown is of no call: `DENIED` stands for it. */
function subjectsOf(mcp: McpView, params: Params, { taskOf }: ReadContext): readonly McpView[] {
  const { method } = mcp
  if (method === 'subscriptions/listen') {
    const { notifications = {} } = params
    if (!isObject(notifications)) throw refused('mcp_params')
    expectExact(notifications, LISTEN_FIELDS)
    const uris = textsOf(notifications['resourceSubscriptions'])
    const tasks = textsOf(notifications['taskIds'])
    if (uris.length + tasks.length === 0) return [mcp]
    return [
      ...uris.map((uri): McpView => ({
        method,
        kind: 'resource',
        name: '',
        uri,
        args: NO_CLAIMS,
        annotations: NO_CLAIMS,
      })),
      ...tasks.map((id) => taskOf(id) ?? UNKNOWN_TASK),
    ]
  }
  const { taskId } = params
  if (method.startsWith('tasks/') && taskId !== undefined) return [taskOf(textOf(taskId)) ?? UNKNOWN_TASK]
  return [mcp]
}

/** The task of another caller, or of none: always denied. */
export const UNKNOWN_TASK: McpView = Object.freeze({ ...NO_REQUEST })

/** What is absent is evaluated as the empty text; servers refuse it. */
const textOf = (value: unknown = ''): string => {
  if (typeof value !== 'string') throw refused('mcp_params')
  return value
}

const textsOf = (value: unknown = []): readonly string[] => {
  if (!Array.isArray(value)) throw refused('mcp_params')
  return value.map(textOf)
}

function argumentsOf({ arguments: given }: Params): Claims {
  if (given === undefined || given === null) return NO_CLAIMS
  if (!isObject(given)) throw refused('mcp_params')
  // Read strictly with the body: frozen, without prototypes.
  return given as Claims
}
