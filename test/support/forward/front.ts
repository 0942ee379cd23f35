import {
  type Body,
  type ClientRequest,
  type ClientResponse,
  type Credential,
  type HeaderCredential,
  type Inbound,
  type Outcome,
  type Sealed,
  Failure,
  NO_CREDENTIAL,
} from '../../../src/core/index.ts'
import { createForward, type ForwardOptions } from '../../../src/forward/index.ts'
import { backendPathOf } from '../../../src/http/index.ts'
import { openListener, parseListenAddress } from '../../../src/listen/index.ts'
import { type BackendOptions, createBackend } from '../../../src/net/index.ts'
import { createRecordingLog } from '../ports.ts'
import type { Sockets } from '../sockets.ts'

export interface FrontOptions {
  readonly origin: string
  readonly backend?: Partial<BackendOptions>
  /** By undici: the backend stands for an egress proxy, which is asked for itself. Default false: connections of our own. */
  readonly byUndici?: boolean
  readonly onFailure?: (failure: Failure) => void
  readonly route?: Partial<Omit<ForwardOptions, 'target'>> & { readonly targetPath?: string }
  /** Of the backend, in milliseconds. */
  readonly timeouts?: Partial<BackendOptions['timeouts']>
  readonly credential?: Credential
  readonly forwarded?: readonly HeaderCredential[]
  readonly final?: boolean
  /** Read the body whole before it is sent. */
  readonly keepBody?: boolean
  readonly sessionToClient?: (id: string) => string
  readonly responseHeaders?: readonly string[]
  /** Called with the request's `end` of its event stream. */
  readonly onStream?: (end: () => void) => void
}

export interface Front {
  readonly url: string
  /** Outcomes of the requests in the order of their end; failures as their code. */
  readonly outcomes: (Outcome | string)[]
}

const readAll = async (request: ClientRequest): Promise<Buffer> => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

const bodyOf = async (request: ClientRequest, keep: boolean): Promise<Body> => {
  const length = request.headers['content-length']
  if (length === undefined && request.headers['transfer-encoding'] === undefined) return { kind: 'none' }
  if (keep) return { kind: 'kept', bytes: await readAll(request) }
  return { kind: 'stream', stream: request, length: length === undefined ? undefined : Number(length) }
}

/** A sealed request as the stages before `forward` would hand it over. The brands exist only in the types. */
const sealedOf = (inbound: Inbound, options: FrontOptions, route: ForwardOptions, body: Body): Sealed => {
  const headers = ['host', new URL(options.origin).host]
  for (const name of ['content-type', 'accept', 'x-test', 'content-length', 'sec-websocket-key']) {
    const value = inbound.request.headers[name]
    if (typeof value === 'string') headers.push(name, value)
  }
  const path = backendPathOf(route, inbound.path) + (inbound.query === '' ? '' : `?${inbound.query}`)
  const matched = { inbound, sessionToClient: options.sessionToClient }
  const armed = { known: { matched }, credential: options.credential ?? NO_CREDENTIAL, forwarded: options.forwarded }
  const final = options.final ?? false
  return { armed, inbound, method: inbound.method, path, headers, body, final } as unknown as Sealed
}

/** A server that does nothing but forward, so that a test sees both ends of `forward` over real sockets. */
export const startFront = async (sockets: Sockets, options: FrontOptions): Promise<Front> => {
  const { origin } = options
  const { targetPath = '/', ...given } = options.route ?? {}
  const route = { path: '/', exactTarget: false, target: { path: targetPath, origin }, sseKeepAlive: 0, ...given }
  const timeouts = { connect: 1000, firstByte: 0, idle: 0, ...options.timeouts }
  const backend = createBackend({ http2: options.byUndici === true, origin, ...options.backend, timeouts })
  const forward = createForward(route, { backend, clock: Date })
  sockets.closing({ close: () => backend.destroy() })
  const outcomes: (Outcome | string)[] = []
  const handle = async (request: ClientRequest, response: ClientResponse): Promise<void> => {
    const [path = '', query = ''] = request.url.split('?', 2)
    let isGone = false
    const inbound: Inbound = {
      request,
      response,
      id: 'id-1',
      receivedAtMs: 0,
      peer: '127.0.0.1',
      method: request.method,
      path,
      query,
      responseHeaders: [...(options.responseHeaders ?? [])],
      get gone() {
        return isGone
      },
      onRefused: undefined,
      holdBody() {},
      releaseBody() {},
      trace: undefined,
      onStream: (end) => options.onStream?.(end),
    }
    response.once('close', () => (isGone = !response.writableEnded))
    try {
      const sealed = sealedOf(inbound, options, route, await bodyOf(request, options.keepBody ?? false))
      const outcome = await (request.isUpgrade ? forward.upgrade(sealed) : forward.forward(sealed))
      outcomes.push(outcome)
      if (!outcome.done) response.writeHead(599, ['again', JSON.stringify(outcome.again)]).end()
    } catch (error) {
      const failure = error instanceof Failure ? error : new Failure('internal_error', { cause: error })
      outcomes.push(failure.code)
      options.onFailure?.(failure)
      if (!response.headersSent) response.writeHead(failure.status, ['reason', failure.code]).end()
    }
  }
  const listener = await openListener({
    address: parseListenAddress('127.0.0.1:0'),
    headerLimitBytes: 16 * 1024,
    servesUpgrade: () => true,
    serve: (request, response) => void handle(request, response),
    refusal: ({ code }) => ({ headers: {}, body: code }),
    log: createRecordingLog(),
  })
  sockets.closing(listener)
  return { url: listener.url, outcomes }
}
