import { sendTry } from './api.js'

/** The two eras of the protocol: one request each, and sessions. */
export const ERAS = ['2026-07-28', '2025-11-25']

const ACCEPT = 'application/json, text/event-stream'
const ME = { name: 'extauth-inspector', version: '1' }
const MAX_PAGES = 20
const META = 'io.modelcontextprotocol/'

/** The proxy or the server refused: `status` is HTTP's, `requestId` finds the request in the list, `said` is the part of the message that came from there. */
export class McpError extends Error {
  constructor(message, { status, requestId, said = '' } = {}) {
    super(message)
    this.status = status
    this.said = said
    this.requestId = requestId
  }
}

/** A value for a header as the 2026-07-28 revision wants it: ASCII as it is, anything else in base64. */
export function headerText(value) {
  const text = String(value)
  if (/^(?:[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)?$/.test(text) && !/^=\?base64\?.*\?=$/i.test(text)) return text
  let bytes = ''
  for (const byte of new TextEncoder().encode(text)) bytes += String.fromCodePoint(byte)
  return `=?base64?${btoa(bytes)}?=`
}

/** Headers for arguments that a tool's schema wants repeated as headers (`x-mcp-header`). */
export function parameterHeaders(schema, args) {
  const headers = {}
  for (const [name, property] of Object.entries(schema?.properties ?? {})) {
    const header = property?.['x-mcp-header']
    const value = args?.[name]
    if (
      typeof header === 'string' &&
      /^[\w-]+$/.test(header) &&
      value !== undefined &&
      value !== null &&
      typeof value !== 'object'
    )
      headers[`mcp-param-${header.toLowerCase()}`] = headerText(value)
  }
  return headers
}

/** The data of each event of a stream of bytes, as they come (WHATWG HTML, server-sent events). */
async function* eventsOf(stream) {
  let rest = ''
  for await (const piece of piecesOf(stream)) {
    rest += piece
    for (;;) {
      const end = /\r?\n\r?\n/.exec(rest)
      if (end === null) break
      const lines = rest.slice(0, end.index).split(/\r?\n/)
      rest = rest.slice(end.index + end[0].length)
      const data = lines
        .filter((line) => line.startsWith('data:'))
        .map((line) => line.slice(5).replace(/^ /, ''))
        .join('\n')
      if (data !== '') yield data
    }
  }
}

async function* piecesOf(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader()
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

/** An MCP client of one era at one route, that says everything to the proxy through the inspector. */
export class McpClient {
  #route
  #era
  #who
  #session
  #version
  #next = 1
  #last

  /** `who` is `{token}` or `{user}` or neither. */
  constructor(route, era, who) {
    this.#route = route
    this.#era = era
    this.#who = who
    this.#version = era
  }

  get isModern() {
    return this.#era === ERAS[0]
  }

  /** Id of the last request, as the list and the log have it. */
  get lastRequestId() {
    return this.#last
  }

  /** What the server says of itself; in the older era this begins the session. */
  async connect(signal) {
    if (this.isModern) return this.request('server/discover', {}, { signal })
    const result = await this.request(
      'initialize',
      { protocolVersion: this.#era, capabilities: {}, clientInfo: ME },
      { signal },
    )
    this.#version = result.protocolVersion ?? this.#era
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
   */
  async request(method, params, { signal, onNotification = () => {}, headers = {}, progress = false } = {}) {
    const id = this.#next++
    const meta = {
      ...(this.isModern
        ? { [`${META}protocolVersion`]: this.#era, [`${META}clientInfo`]: ME, [`${META}clientCapabilities`]: {} }
        : {}),
      ...(progress ? { progressToken: id } : {}),
    }
    const message = {
      jsonrpc: '2.0',
      id,
      method,
      params: Object.keys(meta).length === 0 ? params : { ...params, _meta: meta },
    }
    const name = params.name ?? params.uri
    const own = this.isModern
      ? { 'mcp-method': method, ...(name === undefined ? {} : { 'mcp-name': headerText(name) }), ...headers }
      : {}
    const cancel = () => {
      // In the newer era a connection that ends says it all.
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
    return Promise.reject(error)
  }

  #error(message, status, back, said) {
    const challenge = back?.get('www-authenticate')
    return new McpError(challenge ? `${message}\n${challenge}` : message, { status, requestId: this.#last, said })
  }
}
