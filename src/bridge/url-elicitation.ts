import { isLoopbackHost, type Log, type MonotonicMs, monotonicNow } from '../core/index.ts'
import {
  CONNECT_STATE,
  CONNECTION_ERROR,
  EventReader,
  isObject,
  messageOf,
  opensUrls,
  type Request,
  type Response,
  setField,
  STATELESS_CAPABILITIES,
  statelessCapabilitiesOf,
  statelessHeaders,
  statelessVersionOf,
  URL_ELICITATION_REQUIRED,
} from '../mcp/index.ts'
import { isStream } from './answers.ts'
import { discard } from './channel.ts'
import type { Wire } from './wire.ts'

/** Opens pages for clients that can't (MCP, URL elicitation). */
export interface PageOpener {
  /** Only pages of this origin are opened. */
  readonly origin: URL
  open(url: string): void
}

/** A response that asks the user to open pages. */
export interface UrlPrompt {
  readonly pages: readonly { readonly url: string; readonly message: string; readonly id: string | undefined }[]
  /** Fields of the repeated request (2026-07-28). */
  readonly retry: Readonly<Record<string, unknown>>
  /** The proxy reports the end to `subscriptions/listen`. */
  readonly isAnnounced: boolean
}

/** The first revision with URL elicitation after a handshake; older ones read any `elicitation` as forms. */
const FIRST_REVISION = '2025-11-25'
const MAX_PAGES = 4
/** Time for the user, as for a login. */
const PATIENCE_MS = 5 * 60_000
/** A page is not opened again within this time: concurrent requests get the same link. */
const REOPEN_MS = 60_000
const MAX_REMEMBERED = 64

/**
 * The request with URL elicitation declared, for `initialize` and stateless requests; undefined if the client declared
 * it or can't have it.
 */
export function declareUrls(request: Request): Request | undefined {
  const { method, params, bytes } = request
  const isStateless = statelessVersionOf(params) !== undefined
  const { protocolVersion, capabilities: own } = params
  if (!isStateless && (method !== 'initialize' || !isSince(protocolVersion))) return undefined
  const capabilities = isStateless ? statelessCapabilitiesOf(params) : own
  if (opensUrls(capabilities)) return undefined
  const path = ['params', ...(isStateless ? ['_meta', STATELESS_CAPABILITIES] : ['capabilities']), 'elicitation']
  const elicitation = isObject(capabilities) ? capabilities['elicitation'] : undefined
  // An empty object means forms.
  const before = isObject(elicitation) && Object.keys(elicitation).length === 0 ? { form: {} } : elicitation
  const changed = setField(bytes, path, { ...(isObject(before) ? before : {}), url: {} })
  const declared = messageOf(JSON.parse(changed.toString()), changed)
  return declared.kind === 'request' ? declared : undefined
}

const isSince = (version: unknown): boolean => typeof version === 'string' && version >= FIRST_REVISION

/** The prompt in a response; undefined for other responses, and for one that asks for something else, too. */
export function promptIn({ result, error }: Response): UrlPrompt | undefined {
  if (isObject(error) && error['code'] === URL_ELICITATION_REQUIRED) {
    const elicitations = isObject(error['data']) ? error['data']['elicitations'] : undefined
    const pages = pagesOf(Array.isArray(elicitations) ? elicitations : [])
    return pages && { pages, retry: {}, isAnnounced: false }
  }
  if (!isObject(result) || result['resultType'] !== 'input_required' || !isObject(result['inputRequests']))
    return undefined
  const { requestState, inputRequests } = result
  const entries = Object.entries(inputRequests)
  const isOther = entries.some(([, one]) => !isObject(one) || one['method'] !== 'elicitation/create')
  const pages = isOther ? undefined : pagesOf(entries.map(([, one]) => (isObject(one) ? one['params'] : undefined)))
  if (pages === undefined) return undefined
  const inputResponses = Object.fromEntries(entries.map(([key]) => [key, { action: 'accept' }]))
  return {
    pages,
    retry: { inputResponses, ...(requestState === undefined ? {} : { requestState }) },
    isAnnounced: typeof requestState === 'string' && requestState.startsWith(CONNECT_STATE),
  }
}

function pagesOf(elicitations: readonly unknown[]): UrlPrompt['pages'] | undefined {
  const pages = elicitations.flatMap((one) => {
    const { mode, url, message, elicitationId: id } = isObject(one) ? one : {}
    if (mode !== 'url' || typeof url !== 'string') return []
    return [{ url, message: typeof message === 'string' ? message : '', id: typeof id === 'string' ? id : undefined }]
  })
  return pages.length === elicitations.length && pages.length > 0 && pages.length <= MAX_PAGES ? pages : undefined
}

/** The request that repeats one after its prompt. */
export const repeated = ({ bytes }: Request, { retry }: UrlPrompt): Buffer =>
  Object.entries(retry).reduce((json, [name, value]) => setField(json, ['params', name], value), bytes)

/** The prompt as text, for a client that opens no pages. */
export function textResponse({ id, method, params }: Request, { pages }: UrlPrompt): Buffer {
  const links = pages.map(({ message, url }) => `${message} Open this link in a browser: ${url}`.trim())
  const text = `${links.join(' ')} Then try again.`
  const type = statelessVersionOf(params) === undefined ? {} : { resultType: 'complete' }
  const body =
    method === 'tools/call'
      ? { result: { ...type, content: [{ type: 'text', text }], isError: true } }
      : { error: { code: CONNECTION_ERROR, message: text, data: { reason: 'not_connected' } } }
  return Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, ...body }))
}

export interface UrlElicitationOptions {
  readonly opener: PageOpener
  readonly wire: Wire
  readonly log: Log
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>
  /** Aborts when the bridge ends. */
  readonly end: AbortSignal
}

/** A subscription to the server's changes. */
interface Watch {
  /** Whether the server accepts it. */
  readonly isOpen: Promise<boolean>
  readonly changed: Promise<void>
}

/** Opens the pages of prompts, and waits until the user has finished there. */
export class UrlElicitation {
  readonly #options: UrlElicitationOptions
  readonly #opened = new Map<string, MonotonicMs>()
  readonly #waiting = new Map<string, Set<() => void>>()
  #watch: Watch | undefined

  constructor(options: UrlElicitationOptions) {
    this.#options = options
  }

  /** Whether the bridge may open these pages: a server must not send users to other hosts. */
  mayOpen({ pages }: Pick<UrlPrompt, 'pages'>): boolean {
    return pages.every(({ url }) => isPageOf(this.#options.opener.origin, url))
  }

  open({ pages }: Pick<UrlPrompt, 'pages'>): void {
    const now = monotonicNow()
    for (const { url } of pages) {
      if (now - (this.#opened.get(url) ?? -Infinity) < REOPEN_MS) continue
      if (this.#opened.size >= MAX_REMEMBERED) this.#opened.clear()
      this.#opened.set(url, now)
      this.#options.log.info({}, 'opening the browser at the request of the server')
      this.#options.opener.open(new URL(url).href)
    }
  }

  /** Opens the pages of `prompt`. Resolves with whether the request should be repeated now; rejects if aborted. */
  async visit(request: Request, prompt: UrlPrompt, signal: AbortSignal): Promise<boolean> {
    const report = await this.#reportOf(request, prompt)
    this.open(prompt)
    if (report === undefined) return true
    const late = new AbortController()
    const isLate = this.#options.pause(PATIENCE_MS, AbortSignal.any([signal, late.signal])).then(() => false)
    try {
      return await Promise.race([report.done.then(() => true), isLate])
    } finally {
      late.abort(new Error('the wait is over'))
      isLate.catch(() => undefined)
    }
  }

  /** The server's report that the user has finished; undefined if it sends none. */
  async #reportOf(
    { params }: Request,
    { pages, isAnnounced }: UrlPrompt,
  ): Promise<{ readonly done: Promise<unknown> } | undefined> {
    const version = statelessVersionOf(params)
    if (version === undefined) return { done: Promise.all(pages.map(({ id }) => this.#completionOf(id ?? ''))) }
    if (!isAnnounced) return undefined
    const watch = (this.#watch ??= this.#watchChanges(version, params['_meta']))
    return (await watch.isOpen) ? { done: watch.changed } : undefined
  }

  /** `notifications/elicitation/complete` (2025-11-25). */
  complete(id: unknown): void {
    if (typeof id !== 'string') return
    for (const resolve of this.#waiting.get(id) ?? []) resolve()
    this.#waiting.delete(id)
  }

  /** A new session may be one with the account. */
  completeAll(): void {
    for (const id of this.#waiting.keys()) this.complete(id)
  }

  #completionOf(id: string): Promise<void> {
    return new Promise((resolve) => {
      if (this.#waiting.size >= MAX_REMEMBERED && !this.#waiting.has(id)) return resolve()
      this.#waiting.set(id, (this.#waiting.get(id) ?? new Set()).add(resolve))
    })
  }

  /** `subscriptions/listen` (2026-07-28): the tools change when the account is connected. */
  #watchChanges(version: string, meta: unknown): Watch {
    const opened = Promise.withResolvers<boolean>()
    const changed = this.#listen(version, meta, () => opened.resolve(true))
      .catch(() => this.#options.log.info({}, 'subscription to the connection of the account failed'))
      .finally(() => {
        this.#watch = undefined
        opened.resolve(false)
      })
    return { isOpen: opened.promise, changed }
  }

  async #listen(version: string, meta: unknown, onOpen: () => void): Promise<void> {
    const { wire, end } = this.#options
    const method = 'subscriptions/listen'
    const own = { ...(isObject(meta) ? meta : {}), progressToken: undefined }
    const params = { notifications: { toolsListChanged: true }, _meta: own }
    const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 'extauth-connect', method, params }))
    const signal = AbortSignal.any([end, AbortSignal.timeout(PATIENCE_MS)])
    const answer = await wire.post(body, statelessHeaders(version, method, params), signal)
    if (answer.status !== 200 || !isStream(answer)) return discard(answer.body)
    onOpen()
    for await (const message of wire.messages(answer, new EventReader(wire.reading.maxBytes)))
      if (message.kind === 'notification' && message.method === 'notifications/tools/list_changed') return
  }
}

function isPageOf(origin: URL, text: string): boolean {
  const url = URL.parse(text)
  if (url === null || url.username !== '' || url.password !== '') return false
  if (url.origin === origin.origin) return url.protocol === 'https:' || url.protocol === 'http:'
  // The proxy may name itself by another loopback name.
  const isLocal = isLoopbackHost(url.hostname) && isLoopbackHost(origin.hostname)
  return isLocal && url.protocol === origin.protocol && url.port === origin.port
}
