import { sendTry } from './api.js'
import { CONNECT_STATE, EventReader, HANDSHAKE_REVISION, STATELESS_REVISION, statelessHeaders } from './protocol.js'

/** The two eras of the protocol: one request each, and sessions. */
export const REVISIONS = [STATELESS_REVISION, HANDSHAKE_REVISION]

const ACCEPT = 'application/json, text/event-stream'
const ME = { name: 'extauth-inspector', version: '1' }
/** Links to pages are shown, for the user to open. */
const CAPABILITIES = { elicitation: { url: {} } }
const MAX_PAGES = 20
const MAX_EVENT_BYTES = 64 * 1024 * 1024
const META = 'io.modelcontextprotocol/'

/** The proxy or the server refused: `status` is HTTP's, `requestId` finds the request in the list, `said` is the part of the message that came from there. */
export class McpError extends Error {
  /**
   * @param {string} message
   * @param {{ status?: number, requestId?: string, said?: string, code?: number, data?: any }} [more]
   */
  constructor(message, { status, requestId, said = '', code, data } = {}) {
    super(message)
    this.code = code
    this.data = data
    this.status = status
    this.said = said
    this.requestId = requestId
  }
}

/** The link with which the proxy asks its user to connect an account, and why; undefined for all else. */
export function connectPromptIn({ result, error }) {
  const isOurs = error?.data?.reason === 'not_connected' || String(result?.requestState).startsWith(CONNECT_STATE)
  const asked = [
    ...Object.values(result?.inputRequests ?? {}).map(({ params }) => params),
    ...(error?.data?.elicitations ?? []),
  ]
  const { url, message } = asked.find((one) => one?.mode === 'url') ?? { url: error?.data?.connectUrl, message: '' }
  return isOurs && /^https?:/.test(url) ? { url, message } : undefined
}

/** The data of each event of a stream of bytes, as they come. */
async function* eventsOf(stream) {
  const events = new EventReader(MAX_EVENT_BYTES)
  const text = new TextDecoder()
  for await (const piece of piecesOf(stream))
    for (const { type, data } of events.push(piece)) if (type === 'message') yield text.decode(data)
}

async function* piecesOf(stream) {
  const reader = stream.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield value
    }
  } finally {
    reader.cancel().catch(() => {})
  }
}

/** An MCP client of one protocol version at one route, which calls the proxy through the inspector. */
export class McpClient {
  #route
  #revision
  #who
  #session
  #version
  #next = 1
  #last

  /** `who` is `{token}` or `{user}` or neither. */
  constructor(route, revision, who) {
    this.#route = route
    this.#revision = revision
    this.#who = who
    this.#version = revision
  }

  get isModern() {
    return this.#revision === STATELESS_REVISION
  }

  /** Id of the last request, as the list and the log have it. */
  get lastRequestId() {
    return this.#last
  }

  /** The chosen user; undefined with a token. */
  get user() {
    return this.#who.user
  }

  /** Initializes the connection; in older protocol versions this starts the session. */
  async connect(signal) {
    if (this.isModern) return this.request('server/discover', {}, { signal })
    const result = await this.request(
      'initialize',
      { protocolVersion: this.#revision, capabilities: CAPABILITIES, clientInfo: ME },
      { signal },
    )
    this.#version = result.protocolVersion ?? this.#revision
    await this.#post({ jsonrpc: '2.0', method: 'notifications/initialized' }, {}, { signal })
    return result
  }

  /** Everything of a list, page after page: `tools`, `resources`, `prompts`. A server that has none of a kind has an empty list. */
  async list(kind, signal) {
    const items = []
    let cursor
    for (let page = 0; page < MAX_PAGES; page++) {
      const result = await this.request(`${kind}/list`, cursor === undefined ? {} : { cursor }, { signal }).catch(
        (error) => {
          if (error instanceof McpError && error.code === -32601) return {}
          throw error
        },
      )
      items.push(...(result[kind] ?? []))
      cursor = result.nextCursor
      if (cursor === undefined) break
    }
    return items
  }

  /**
   * One request; `onNotification` gets what the server says before it answers. Rejects with `McpError` for whatever is no result.
   * @param {string} method
   * @param {Record<string, any>} params
   * @param {{ signal?: AbortSignal, onNotification?: (message: any) => void, headers?: Record<string, string>, progress?: boolean }} [options]
   */
  async request(method, params, { signal, onNotification = () => {}, headers = {}, progress = false } = {}) {
    const id = this.#next++
    const meta = {
      ...(this.isModern
        ? {
            [`${META}protocolVersion`]: this.#revision,
            [`${META}clientInfo`]: ME,
            [`${META}clientCapabilities`]: CAPABILITIES,
          }
        : {}),
      ...(progress ? { progressToken: id } : {}),
    }
    const message = {
      jsonrpc: '2.0',
      id,
      method,
      params: Object.keys(meta).length === 0 ? params : { ...params, _meta: meta },
    }
    const own = this.isModern ? { ...statelessHeaders(this.#revision, method, params), ...headers } : {}
    const cancel = () => {
      // In the newer revision the end of the connection is sufficient.
      if (!this.isModern && this.#session !== undefined)
        this.#post({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } }, {}, {}).catch(
          () => {},
        )
    }
    signal?.addEventListener('abort', cancel, { once: true })
    try {
      return await this.#post(message, own, { signal, onNotification })
    } finally {
      signal?.removeEventListener('abort', cancel)
    }
  }

  /** Ends the session, where there is one. */
  async close() {
    const session = this.#session
    this.#session = undefined
    if (session === undefined) return
    await sendTry({
      route: this.#route,
      method: 'DELETE',
      headers: this.#headers({ 'mcp-session-id': session }),
      ...this.#who,
    }).catch(() => {})
  }

  #headers(more) {
    return {
      accept: ACCEPT,
      'mcp-protocol-version': this.#version,
      ...(this.#session === undefined ? {} : { 'mcp-session-id': this.#session }),
      ...more,
    }
  }

  /**
   * @param {{ id?: number | string, [name: string]: any }} message
   * @param {Record<string, string>} headers
   * @param {{ signal?: AbortSignal, onNotification?: (message: any) => void }} options
   */
  async #post(message, headers, { signal, onNotification = () => {} }) {
    const {
      status,
      headers: back,
      response,
    } = await sendTry(
      {
        route: this.#route,
        method: 'POST',
        headers: this.#headers({ 'content-type': 'application/json', ...headers }),
        body: JSON.stringify(message),
        ...this.#who,
      },
      signal,
    )
    this.#last = back.get('x-request-id') ?? undefined
    this.#session ??= back.get('mcp-session-id') ?? undefined
    const type = back.get('content-type') ?? ''
    if (type.startsWith('text/event-stream')) return this.#readEvents(message.id, response.body, onNotification)
    const text = await response.text()
    if (message.id === undefined && status < 300) return undefined
    let answer
    try {
      answer = JSON.parse(text)
    } catch {
      throw this.#error(
        `HTTP ${status}${text === '' ? '' : `: ${text.slice(0, 300)}`}`,
        status,
        back,
        text.slice(0, 300),
      )
    }
    return this.#resultOf(answer, status, back)
  }

  async #readEvents(id, stream, onNotification) {
    for await (const data of eventsOf(stream)) {
      const message = JSON.parse(data)
      if (message.id === id && message.method === undefined) return this.#resultOf(message, 200)
      onNotification(message)
      if (message.id !== undefined && message.method !== undefined) await this.#decline(message)
    }
    throw new McpError('The stream ended without an answer.', { requestId: this.#last })
  }

  /** The server asks its client for something that a page for trying things can't do; it must not wait for ever. */
  async #decline({ id }) {
    const error = { code: -32601, message: 'The inspector answers no requests of servers.' }
    await this.#post({ jsonrpc: '2.0', id, error }, {}, {}).catch(() => {})
  }

  #resultOf(answer, status, back) {
    if (answer?.error === undefined && answer?.result !== undefined) return answer.result
    const { message = '', code, data } = answer?.error ?? {}
    const reason = data?.reason === undefined ? '' : ` (${data.reason})`
    const error = this.#error(
      `${status >= 400 ? `HTTP ${status}: ` : ''}${message || 'no result'}${reason}`,
      status,
      back,
      message,
    )
    error.code = code
    error.data = data
    return Promise.reject(error)
  }

  #error(message, status, back, said) {
    const challenge = back?.get('www-authenticate')
    return new McpError(challenge ? `${message}\n${challenge}` : message, { status, requestId: this.#last, said })
  }
}
