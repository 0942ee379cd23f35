import type { IncomingMessage } from 'node:http'
import { type ClientRequest, type EndpointResponse, Failure, Secret } from '../core/index.ts'
import type { PageRequest } from '../ops/index.ts'

/** A request to the proxy's own listener. */
export interface OwnRequest {
  readonly method: string
  /** Path below the listener, without query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer | undefined
  /** Ends the request when the page has gone. */
  readonly signal: AbortSignal
}

/** Dependencies of trial requests. */
export interface TryDeps {
  /** Options for the page; `users` only if there are users to choose. */
  readonly offer: () => { readonly proxyUrl: string; readonly users?: readonly string[] }
  /** Path of a route; undefined when there is none of that name. */
  readonly pathOf: (route: string) => string | undefined
  /** Sends a request to the proxy as any client does. Rejects when it can't be reached. */
  readonly send: (request: OwnRequest) => Promise<IncomingMessage>
  /** A token of a user who may be chosen, for a route; undefined where none is needed. Rejects with `login_refused` when the login fails. */
  readonly tokenOf?: (user: string, route: string) => Promise<Secret | undefined>
}

/** Of the headers that the page wants to send these go on: those of an MCP client. */
const PASSED = /^(?:accept|content-type|last-event-id|mcp-[a-z0-9-]+)$/
/** Of the proxy's answer these come back. */
const RETURNED = ['content-type', 'mcp-session-id', 'www-authenticate', 'retry-after', 'x-request-id']
const METHODS: ReadonlySet<string> = new Set(['POST', 'GET', 'DELETE'])
const MAX_BODY_BYTES = 2 * 1024 * 1024
const TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/
const HEADER_VALUE = /^[\t\x20-\x7e]{0,8192}$/

/** A trial request of the page. The token is in the body, so that no header list contains it. */
interface Envelope {
  readonly route: string
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | undefined
  readonly token: string | undefined
  readonly user: string | undefined
}

/**
 * Sends a page's MCP requests through the real proxy listener, so that they are requests like any other: the page stays on
 * its own origin, and nothing is allowed to other origins for it. Tokens go through; none is kept or logged.
 */
export function createTry(deps: TryDeps): { relay(asked: PageRequest): Promise<EndpointResponse> } {
  return {
    async relay({ method: asked, request, gone }) {
      if (asked !== 'POST') throw new Failure('method_not_allowed')
      const { route, method, headers: wanted, body, ...who } = envelopeOf(await readBody(request))
      const path = deps.pathOf(route)
      if (path === undefined) throw refused('no such route to try')
      if (!METHODS.has(method)) throw refused('no such method to try')
      const token = await tokenFor(who, route, deps)
      const headers: Record<string, string> = { 'user-agent': 'extauth-inspector' }
      for (const [name, value] of Object.entries(wanted))
        if (PASSED.test(name) && HEADER_VALUE.test(value)) headers[name] = value
      if (token !== undefined) headers['authorization'] = `Bearer ${token.reveal()}`
      const bytes = body === undefined ? undefined : Buffer.from(body)
      const answer = await send(deps, { method, path, headers, body: bytes, signal: gone })
      const back: Record<string, string> = {}
      for (const name of RETURNED) {
        const value = answer.headers[name]
        if (typeof value === 'string') back[name] = value
      }
      // The page reads status and challenge; the browser must not make anything of them.
      const responseHeaders = { ...back, 'x-extauth-try-status': String(answer.statusCode ?? 0) }
      return { status: 200, headers: responseHeaders, body: answer }
    },
  }
}

const refused = (detail: string): Failure => new Failure('bad_request', { detail })

function envelopeOf(bytes: Buffer): Envelope {
  let parsed: unknown
  try {
    parsed = JSON.parse(bytes.toString('utf8'))
  } catch {
    throw refused('a try that is not JSON')
  }
  const { route, method, headers, body, token, user } = (parsed ?? {}) as Partial<Record<keyof Envelope, unknown>>
  const text = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)
  const lines = typeof headers === 'object' && headers !== null ? Object.entries(headers) : []
  return {
    route: text(route) ?? '',
    method: text(method) ?? '',
    headers: Object.fromEntries(lines.filter((line): line is [string, string] => typeof line[1] === 'string')),
    body: text(body),
    token: text(token),
    user: text(user),
  }
}

async function send(deps: TryDeps, request: OwnRequest): Promise<IncomingMessage> {
  try {
    return await deps.send(request)
  } catch (cause) {
    throw new Failure('backend_unreachable', { detail: 'the proxy listener does not answer the inspector', cause })
  }
}

async function tokenFor(
  { token, user }: Pick<Envelope, 'token' | 'user'>,
  route: string,
  deps: TryDeps,
): Promise<Secret | undefined> {
  if (token !== undefined) {
    if (!TOKEN.test(token)) throw refused('what was pasted is no access token')
    return new Secret(token)
  }
  if (user === undefined) return undefined
  if (deps.tokenOf === undefined || deps.offer().users?.includes(user) !== true) throw refused('no such user to try as')
  return deps.tokenOf(user, route)
}

async function readBody(request: ClientRequest): Promise<Buffer> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > MAX_BODY_BYTES)
      throw new Failure('body_too_large', { limit: { amount: MAX_BODY_BYTES, unit: 'bytes' } })
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
