import { once } from 'node:events'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { Failure, Secret } from '../core/index.ts'
import type { PageRequest } from '../ops/index.ts'

/** One request to the proxy's own listener. */
export interface OwnRequest {
  readonly method: string
  /** Path below the listener, without query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer | undefined
  /** Ends the request when the page has gone. */
  readonly signal: AbortSignal
}

/** What trying requests needs from elsewhere. */
export interface TryDeps {
  /** What the page may choose from; `users` only where there are users to choose. */
  readonly offer: () => { readonly proxyUrl: string; readonly users?: readonly string[] }
  /** Path of a route; undefined when there is none of that name. */
  readonly pathOf: (route: string) => string | undefined
  /** Sends a request to the proxy as any client does. Rejects when it can't be reached. */
  readonly send: (request: OwnRequest) => Promise<IncomingMessage>
  /** A token of a user who may be chosen, for a route; rejects when there is none. */
  readonly tokenOf?: (user: string, route: string) => Promise<Secret>
}

/** Where the page puts the token that somebody pasted; never stored, never logged. */
export const TOKEN_HEADER = 'x-extauth-try-token'
/** Whom it is to be in the lab, instead. */
export const USER_HEADER = 'x-extauth-try-user'

/** Of a page's request these go on; a browser adds others that no MCP client sends. */
const PASSED = /^(?:accept|content-type|last-event-id|mcp-[a-z0-9-]+)$/
/** Of the proxy's answer these come back. */
const RETURNED = ['content-type', 'mcp-session-id', 'www-authenticate', 'retry-after', 'x-request-id']
const METHODS: ReadonlySet<string> = new Set(['POST', 'GET', 'DELETE'])
const MAX_BODY_BYTES = 1024 * 1024
const TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/

/**
 * Sends a page's MCP requests through the real proxy listener, so that they are requests like any other: the page stays on
 * its own origin, and nothing is allowed to other origins for it.
 */
export function createTry(deps: TryDeps): { relay(asked: PageRequest): Promise<void> } {
  return {
    async relay({ method, query, request, response }) {
      if (!METHODS.has(method)) throw new Failure('method_not_allowed')
      const route = query.get('route') ?? ''
      const path = deps.pathOf(route)
      if (path === undefined) throw new Failure('bad_request', { detail: 'no such route to try' })
      const token = await tokenFor(request.headers, route, deps)
      const body = method === 'POST' ? await readBody(request) : undefined
      const gone = new AbortController()
      response.on('close', () => gone.abort())
      const headers: Record<string, string> = { 'user-agent': 'extauth-inspector' }
      for (const [name, value] of Object.entries(request.headers))
        if (PASSED.test(name) && typeof value === 'string') headers[name] = value
      if (token !== undefined) headers['authorization'] = `Bearer ${token.reveal()}`
      const answer = await send(deps, { method, path, headers, body, signal: gone.signal })
      const back: Record<string, string> = {}
      for (const name of RETURNED) {
        const value = answer.headers[name]
        if (typeof value === 'string') back[name] = value
      }
      // The page reads the status and the challenge; the browser must not make anything of them.
      response.writeHead(200, { ...back, 'x-extauth-try-status': String(answer.statusCode ?? 0) })
      response.flushHeaders()
      answer.on('error', () => response.destroy())
      answer.on('aborted', () => response.destroy())
      answer.pipe(response)
      await once(response, 'close')
    },
  }
}

async function send(deps: TryDeps, request: OwnRequest): Promise<IncomingMessage> {
  try {
    return await deps.send(request)
  } catch (cause) {
    throw new Failure('backend_unreachable', { detail: 'the proxy listener does not answer the inspector', cause })
  }
}

async function tokenFor(headers: IncomingHttpHeaders, route: string, deps: TryDeps): Promise<Secret | undefined> {
  const pasted = headers[TOKEN_HEADER]
  if (typeof pasted === 'string' && pasted !== '') {
    if (!TOKEN.test(pasted)) throw new Failure('bad_request', { detail: 'what was pasted is no access token' })
    return new Secret(pasted)
  }
  const user = headers[USER_HEADER]
  if (typeof user !== 'string' || user === '') return undefined
  if (deps.tokenOf === undefined || deps.offer().users?.includes(user) !== true)
    throw new Failure('bad_request', { detail: 'no such user to try as' })
  return deps.tokenOf(user, route)
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > MAX_BODY_BYTES) throw new Failure('body_too_large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
