import type { IncomingMessage, ServerResponse } from 'node:http'
import { localhostHostValidation, localhostOriginValidation, toNodeHandler } from '@modelcontextprotocol/node'
import type { Clock } from '../src/core/index.ts'
import { createMcpEndpoint, MAX_BODY_BYTES } from './mcp/endpoint.ts'
import { FAIL_WITH_STATUS, SHOW_REQUEST } from './mcp/lab-tools.ts'
import { shownText } from './mcp/shown-request.ts'
import { createLabState, type RecordedRequest, type WaitOutcome } from './mcp/state.ts'
import { listenOnLoopback } from './listen.ts'
import { ownerOfKey, personalKeysPage } from './personal-keys.ts'
import { bearerOf, createVerifier, type Requirement, valuesOf, type Verifier } from './requirements.ts'

export interface LabBackendOptions {
  /** Port on loopback; 0 takes a free one. */
  readonly port: number
  /** Where the MCP server is served, and what is demanded there: `{'/open': {kind: 'none'}, …}`. */
  readonly mounts: Readonly<Record<string, Requirement>>
  readonly clock: Clock
  /** Whether the tools of the conformance suite are served beside the lab's own. Default true. */
  readonly conformance?: boolean
  /** How many of the last requests are kept. Default 200. */
  readonly keep?: number
  /** Called for every request to a mount, after its verification and before the response. */
  readonly onRequest?: (record: RecordedRequest) => void
}

export interface LabBackend {
  readonly url: string
  /** The last requests as they came in, oldest first; of one mount where it is named. */
  requests(mount?: string): RecordedRequest[]
  readonly waits: readonly WaitOutcome[]
  /** Ids of the open sessions. */
  sessions(): string[]
  /** Forgets what was recorded. */
  forget(): void
  close(): Promise<void>
}

/**
 * Starts the lab's MCP server on loopback: a real server of both eras at each mount, behind a strict verifier that
 * verifies the request as received. A demo for trying things out. Throws `PortInUse`.
 */
export async function startLabBackend(options: LabBackendOptions): Promise<LabBackend> {
  const { clock, keep = 200 } = options
  const state = createLabState()
  const endpoint = createMcpEndpoint(state, options.conformance ?? true)
  const verifiers = new Map<string, Verifier>(
    Object.entries(options.mounts).map(([path, requirement]) => [path, createVerifier(requirement, clock)]),
  )
  const hostIsLocal = localhostHostValidation()
  const originIsLocal = localhostOriginValidation()
  const serveMcp = toNodeHandler({ fetch: endpoint.fetch }, { maxRequestBodySize: MAX_BODY_BYTES })
  const recorded: RecordedRequest[] = []
  let count = 0

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // The backend's own clock, so that a test can set it off and see a proxy correct its signatures.
    response.setHeader('date', new Date(clock.now()).toUTCString())
    const target = request.url ?? '/'
    const path = target.split('?', 1)[0] ?? '/'
    if (path === '/lab/requests') {
      if (!hostIsLocal(request, response) || !originIsLocal(request, response)) return undefined
      return answer(response, 200, { requests: recorded.map(readable) })
    }
    if (path === '/lab/keys') {
      return void response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(personalKeysPage())
    }
    if (path === '/lab/me') {
      const owner = ownerOfKey(bearerOf(valuesOf(request.rawHeaders, 'authorization')) ?? '')
      return owner === undefined ? answer(response, 401, { error: 'invalid_key' }) : answer(response, 200, owner)
    }
    const mount = [...verifiers.keys()].find((prefix) => path === prefix || path.startsWith(`${prefix}/`))
    const verify = mount === undefined ? undefined : verifiers.get(mount)
    if (mount === undefined || verify === undefined) return answer(response, 404, { error: 'not_found' })

    const receivedAtMs = clock.now()
    const body = await readBody(request)
    if (body === undefined) return answer(response, 413, { error: 'body_too_large' })
    const raw = { method: request.method ?? 'GET', target, headers: request.rawHeaders, body }
    const verdict = await verify(raw)
    const record: RecordedRequest = {
      number: ++count,
      receivedAtMs,
      ...raw,
      mount,
      verified: verdict.ok ? verdict.verified : undefined,
      status: 0,
      aborted: false,
    }
    recorded.push(record)
    if (recorded.length > keep) recorded.shift()
    options.onRequest?.(record)
    response.once('close', () => {
      record.status = response.headersSent ? response.statusCode : 0
      record.aborted = !response.writableEnded
    })

    if (!verdict.ok) return answer(response, verdict.status, verdict.body, verdict.headers)
    if (!hostIsLocal(request, response) || !originIsLocal(request, response)) return undefined
    const call = toolCall(body)
    const demanded = demandedStatus(call)
    if (demanded !== undefined) return answer(response, demanded, { error: 'as_demanded', status: demanded })
    // For people with curl: MCP clients never ask for this alone (they must accept JSON and event streams).
    if (call?.name === SHOW_REQUEST && request.headers.accept === 'text/plain') {
      return void response.writeHead(200, { 'content-type': 'text/plain; charset=utf-8' }).end(shownText(record))
    }
    await state.current.run(record, () => serveMcp(replayed(request, body), response))
  }

  const server = await listenOnLoopback(options.port, (request, response) => {
    handle(request, response).catch(() => {
      if (response.headersSent) response.destroy()
      else answer(response, 500, { error: 'internal_error' })
    })
  })

  return {
    url: server.url,
    requests: (mount) => recorded.filter((record) => mount === undefined || record.mount === mount),
    waits: state.waits,
    sessions: endpoint.sessions,
    forget: () => recorded.splice(0),
    close: async () => {
      await endpoint.close()
      await server.close()
    },
  }
}

/** The request with its body handed back: it was read whole, because verifiers and the record need its bytes. */
function replayed(request: IncomingMessage, body: Buffer) {
  const { method, url, headers } = request
  return {
    ...(method === undefined ? {} : { method }),
    ...(url === undefined ? {} : { url }),
    headers,
    async *[Symbol.asyncIterator]() {
      if (body.length > 0) yield await Promise.resolve(body)
    },
  }
}

async function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > MAX_BODY_BYTES) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

interface ToolCall {
  readonly name?: unknown
  readonly arguments?: { readonly status?: unknown }
}

/** The tool that a body calls, where it is one of those that are answered here; undefined for every other request. */
function toolCall(body: Buffer): ToolCall | undefined {
  if (!body.includes(FAIL_WITH_STATUS) && !body.includes(SHOW_REQUEST)) return undefined
  try {
    const message = JSON.parse(body.toString('utf8')) as { method?: unknown; params?: ToolCall }
    return message.method === 'tools/call' ? message.params : undefined
  } catch {
    return undefined
  }
}

/** The status that a call of `fail_with_status` demands. */
function demandedStatus(call: ToolCall | undefined): number | undefined {
  const status = call?.name === FAIL_WITH_STATUS ? call.arguments?.status : undefined
  return typeof status === 'number' && Number.isInteger(status) && status >= 400 && status <= 599 ? status : undefined
}

function readable(record: RecordedRequest): object {
  return { ...record, body: record.body.toString('utf8', 0, 4096) }
}

function answer(
  response: ServerResponse,
  status: number,
  body: object,
  headers: Readonly<Record<string, string>> = {},
): void {
  const bytes = Buffer.from(JSON.stringify(body))
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': bytes.length, ...headers })
  response.end(bytes)
}
