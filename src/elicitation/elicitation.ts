import {
  type Body,
  type Caller,
  type Clock,
  type ConnectionNeed,
  type ConnectLinks,
  type Elicitation,
  type EndpointResponse,
  Failure,
  type InsertEvents,
  type Known,
  type Log,
  type Matched,
  type Metrics,
} from '../core/index.ts'
import {
  opensUrls,
  parseMessage,
  removeParams,
  type Request,
  rpcSubjectOf,
  SESSION_HEADER,
  sessionIdAt,
  statelessCapabilitiesOf,
  statelessVersionOf,
} from '../mcp/index.ts'
import { EventStream } from './event-stream.ts'
import { answerAsPlaceholder } from './placeholder.ts'
import { elicitationError, inputRequired, plainError, type Prompt, type PromptWay, toolError } from './prompt.ts'
import { createRequestStates, RETRY_FIELDS, type Retry } from './request-state.ts'
import {
  type MarkedSession,
  OPENS_URLS,
  placeholderSession,
  readSession,
  type SessionMark,
  TEXT_ONLY,
} from './session-mark.ts'

export interface ElicitationOptions {
  readonly route: string
  readonly links: ConnectLinks
  /** Names of the connections that the route uses. */
  readonly providers: readonly string[]
  /** The one whose credential is sent with list requests; undefined if a different credential is. */
  readonly listedWith: string | undefined
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  /** Version of this program, for the placeholder server. */
  readonly version: string
}

/** Methods for which clients of both revisions can be asked to open a URL. */
const ASKABLE: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read'])
const HANDSHAKE = ['initialize', 'server/discover', 'ping']
/** Methods that the placeholder server answers; list methods are added by their ending. */
const PLACEHOLDER_METHODS: ReadonlySet<string> = new Set([...HANDSHAKE, 'logging/setLevel', 'subscriptions/listen'])
/** Prompts for one request in ten minutes; then the client gets a text. */
const MOST_PROMPTS = 3
const JSON_HEADERS = {
  'content-type': 'application/json',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
}
const STREAM_HEADERS = { 'content-type': 'text/event-stream', 'cache-control': 'no-store' }
/** Comment interval of a waiting stream: proxies close connections that are idle for a minute. */
const KEEP_ALIVE_MS = 15_000

/** Whether a request belongs to handshake, lists and pings, for which `listing` has a credential. */
export function isListing({ matched: { body } }: Known): boolean {
  const method = body.kind === 'kept' ? rpcSubjectOf(body.bytes)?.method : undefined
  return method !== undefined && (LISTING.has(method) || method.endsWith('/list'))
}

const LISTING: ReadonlySet<string> = new Set([...HANDSHAKE, 'notifications/initialized'])

/** What `prepare` found in a request. */
interface Prepared {
  readonly session: MarkedSession | undefined
  readonly retry: Retry | undefined
  /** Binds the id of a placeholder session to the caller; undefined on routes without callers. */
  readonly bind: Matched['sessionToClient']
}

/** Asks callers without a connection to connect their account (connections.md §2). */
export function createElicitation(options: ElicitationOptions): Elicitation {
  const { route, links, clock, log } = options
  const prompts = options.metrics.counter(
    'extauth_connection_prompts_total',
    'Requests to connect an account, by way: input_required, elicitation_error, text.',
    ['provider', 'way'],
  )
  const states = createRequestStates(links, clock)
  const prepared = new WeakMap<Known, Prepared>()

  const removeState = async (known: Known, body: Buffer): Promise<Retry | undefined> => {
    const message = parseMessage(body)
    if (message.kind !== 'request') return undefined
    const { method, params } = message
    const { isOurs, retry } = await states.read({ caller: known.caller, route, method, params })
    if (isOurs) known.matched.body = { kind: 'kept', bytes: removeParams(body, RETRY_FIELDS) }
    return retry
  }

  const promptFor = async (known: Known, need: ConnectionNeed): Promise<Prompt> => {
    const { caller, matched } = known
    const link = await links.link(caller, route, need)
    const label = links.label(need.provider)
    const isRefused = prepared.get(known)?.retry?.isRefused === true
    return { need, link, label, route, nowMs: clock.now(), requestId: matched.inbound.id, isRefused }
  }

  const counted = (way: PromptWay, { need }: Prompt, body: string): EndpointResponse => {
    prompts.with(need.provider, way).add()
    log.info({ route, provider: need.provider, problem: need.problem, way }, 'account not connected, prompting')
    return { status: 200, headers: JSON_HEADERS, body }
  }

  /** The prompt in the best way that this client supports. */
  const ask = async (known: Known, request: Request, need: ConnectionNeed): Promise<EndpointResponse> => {
    const prompt = await promptFor(known, need)
    const { id, method, params } = request
    const isStateless = statelessVersionOf(params) !== undefined
    if (ASKABLE.has(method) && !prompt.isRefused) {
      const { retry, session } = prepared.get(known) ?? {}
      if (isStateless && opensUrls(statelessCapabilitiesOf(params)) && (retry?.prompts ?? 0) < MOST_PROMPTS) {
        const state = states.write({ caller: known.caller, route, method, params }, retry)
        return counted('input_required', prompt, inputRequired(id, prompt, state))
      }
      if (!isStateless && session?.mark === OPENS_URLS)
        return counted('elicitation_error', prompt, elicitationError(id, prompt))
    }
    const body = method === 'tools/call' ? toolError(id, prompt, isStateless) : plainError(id, prompt)
    return counted('text', prompt, body)
  }

  const placeholder = async (known: Known, request: Request, need: ConnectionNeed): Promise<EndpointResponse> => {
    const { matched, caller } = known
    const onStream =
      request.method === 'subscriptions/listen'
        ? (notify: { toolsChanged(): void }, end: () => void) =>
            links.onConnected(caller, need.provider, () => {
              notify.toolsChanged()
              // The client subscribes again, at the backend.
              end()
            })
        : undefined
    const response = await answerAsPlaceholder({
      headers: headersFor(matched),
      body: request.bytes,
      label: links.label(need.provider),
      version: options.version,
      onStream,
    })
    if (request.method !== 'initialize' || response.status !== 200) return response
    const session = placeholderSession(markOf(request))
    const visible = prepared.get(known)?.bind?.(session) ?? session
    return { ...response, headers: { ...response.headers, [SESSION_HEADER]: visible } }
  }

  /**
   * Reports on a stream of the backend (2025-11-25) that the caller connected an account: after the credential was rejected,
   * for more scopes, or for some requests only.
   */
  const insertCompleted = (
    { caller }: Known,
    session: MarkedSession | undefined,
    insert: Parameters<InsertEvents>[0],
  ): (() => void) => {
    const stops = options.providers.map((provider) =>
      links.onConnected(caller, provider, (elicitationId) => {
        // After an outage of the store, the link is unknown: most accounts were connected before.
        if (elicitationId === '') return
        if (session?.mark === OPENS_URLS) insert(Buffer.from(completed(elicitationId)))
        if (provider === options.listedWith) insert(Buffer.from(TOOLS_CHANGED))
      }),
    )
    return () => {
      for (const stop of stops) stop()
    }
  }

  return {
    prepare(known) {
      const { matched } = known
      const { body, sessionToClient: bind } = matched
      const session = takeSession(matched)
      matched.sessionToClient = (id) => {
        const marked = id + (session?.mark ?? markOfBody(matched.body))
        return bind?.(marked) ?? marked
      }
      if (matched.inbound.method === 'GET') matched.insertEvents = (insert) => insertCompleted(known, session, insert)
      const found = { session, bind, retry: undefined }
      prepared.set(known, found)
      if (body.kind !== 'kept' || !states.mayHold(body.bytes)) return undefined
      return removeState(known, body.bytes).then((retry) => void prepared.set(known, { ...found, retry }))
    },
    connected(known) {
      const session = prepared.get(known)?.session
      if (session !== undefined && session.backendId === undefined)
        throw new Failure('unknown_session', { detail: 'the account was connected; the session was a placeholder' })
    },
    async respond(known, failure) {
      const need = failure.connection
      if (need === undefined) throw failure
      const { matched, caller } = known
      const { inbound, body } = matched
      if (inbound.method === 'GET') return waitingStream(links, caller, need)
      if (inbound.method === 'DELETE') return { status: 200, headers: {}, body: '' }
      const message = parseMessage(body.kind === 'kept' ? body.bytes : Buffer.alloc(0))
      if (message.kind === 'notification' || message.kind === 'response') return { status: 202, headers: {}, body: '' }
      if (message.kind === 'malformed') {
        const prompt = await promptFor(known, need)
        return counted('text', prompt, plainError(message.id, prompt))
      }
      const { method } = message
      if (PLACEHOLDER_METHODS.has(method) || method.endsWith('/list')) return placeholder(known, message, need)
      return ask(known, message, need)
    },
  }
}

/** Removes the mark from the session id of a request, for the backend; a placeholder's id never gets there. */
function takeSession({ headers }: Matched): MarkedSession | undefined {
  const index = sessionIdAt(headers)
  if (index === -1) return undefined
  const session = readSession(headers[index] ?? '')
  if (session.backendId !== undefined) headers[index] = session.backendId
  return session
}

const markOf = ({ params }: Pick<Request, 'params'>): SessionMark =>
  opensUrls(params['capabilities']) ? OPENS_URLS : TEXT_ONLY

/** The mark of a session that this request opens. */
function markOfBody(body: Body): SessionMark {
  const message = body.kind === 'kept' ? parseMessage(body.bytes) : undefined
  return message?.kind === 'request' && message.method === 'initialize' ? markOf(message) : ''
}

/** Headers that the server package reads. */
const PASSED_HEADERS: ReadonlySet<string> = new Set([
  'accept',
  'content-type',
  'mcp-protocol-version',
  'mcp-method',
  'mcp-name',
])

function headersFor({ headers }: Matched): Record<string, string> {
  const passed: Record<string, string> = {}
  for (let index = 0; index < headers.length; index += 2) {
    const name = headers[index] ?? ''
    if (PASSED_HEADERS.has(name)) passed[name] = headers[index + 1] ?? ''
  }
  return passed
}

const eventOf = (method: string, params?: object): string =>
  `event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', method, params })}\n\n`
const completed = (elicitationId: string): string => eventOf('notifications/elicitation/complete', { elicitationId })
const TOOLS_CHANGED = eventOf('notifications/tools/list_changed')

/** The GET stream of a session (2025-11-25): reports that the account was connected, and ends. */
function waitingStream(links: ConnectLinks, caller: Caller, need: ConnectionNeed): EndpointResponse {
  const unsubscribe = links.onConnected(caller, need.provider, (elicitationId) => {
    stream.push(completed(elicitationId) + TOOLS_CHANGED)
    stream.push(null)
  })
  const keepAlive = setInterval(() => stream.push(': waiting\n\n'), KEEP_ALIVE_MS).unref()
  const stream = new EventStream(() => {
    clearInterval(keepAlive)
    unsubscribe()
  })
  stream.push(': open\n\n')
  return { status: 200, headers: STREAM_HEADERS, body: stream }
}
