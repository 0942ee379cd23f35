import { type EndpointResponse, Failure, type RequestObserver } from '../core/index.ts'
import { jsonReply, type OpsHandler, type PageRequest, type Pages, type Readiness } from '../ops/index.ts'
import { asset } from './assets.ts'
import { type CaptureOptions, createCapture, MAX_RECORDS, type Capture } from './capture.ts'
import { describe } from './describe.ts'
import { createEventStreams, createGatherer, type EventStreams } from './live.ts'
import { maskQuery } from './mask.ts'
import { type TryDeps, createTry } from './try.ts'

/** Path of the page on the admin listener. */
export const INSPECT_PATH = '/inspect'

/** Maximum characters of a search text for bodies. */
const MAX_SEARCHED = 200

/** Additional data of the page, read on each request. */
export interface Surroundings {
  readonly version: string
  /** The effective configuration; secrets as references. */
  readonly config: () => object
  readonly routes: () => readonly {
    readonly name: string
    readonly path: string
    readonly type: string
    readonly target: string
  }[]
  readonly readiness: () => Readiness
  /** The endpoints of the admin listener for the cache. */
  readonly listCache: OpsHandler
  readonly purgeCache: OpsHandler
  readonly try: TryDeps
}

/** The inspector of one proxy. */
export interface Inspector {
  /** Observer for the proxy. */
  readonly observer: RequestObserver
  /** Pages for the admin listener, about the proxy and its requests. */
  pages(surroundings: Surroundings): Pages
  /** Ends the event streams of all pages and drops all records. */
  close(): void
}

const REQUEST = /^\/api\/requests\/([\w-]{1,128})(\/events)?$/

/** Creates an inspector: an observer that records requests, and pages that show them. */
export function createInspector(options: CaptureOptions): Inspector {
  const capture = createCapture(options)
  const streams = createEventStreams()
  return {
    observer: capture.observer,
    pages: (surroundings) => pagesOf(options, surroundings, capture, streams),
    close() {
      streams.closeAll()
      capture.close()
    },
  }
}

function pagesOf(options: CaptureOptions, surroundings: Surroundings, capture: Capture, streams: EventStreams): Pages {
  const attempt = createTry(surroundings.try)
  const json = jsonEndpoints(options, surroundings, capture)
  const serve = async (asked: PageRequest): Promise<EndpointResponse> => {
    const { method, path } = asked
    const read = method === 'HEAD' ? 'GET' : method
    if (path === '' || path === '/' || path.startsWith('/page/')) {
      if (read !== 'GET') throw new Failure('method_not_allowed')
      return assetResponse(path.startsWith('/page/') ? path.slice('/page/'.length) : 'index.html')
    }
    if (path === '/api/try') return attempt.relay(asked)
    const [, id, events] = REQUEST.exec(path) ?? []
    // A stream has no end: its head must be available before.
    if (events !== undefined || path === '/api/events') {
      if (method !== 'GET') throw new Failure('method_not_allowed')
      return id === undefined ? streamAll(capture, streams) : streamOne(capture, streams, id)
    }
    if (id !== undefined) {
      if (read !== 'GET') throw new Failure('method_not_allowed')
      return showOne(capture, id)
    }
    const endpoint = json[`${read} ${path}`]
    if (endpoint === undefined) {
      const isKnown = Object.keys(json).some((key) => key.endsWith(` ${path}`))
      throw new Failure(isKnown ? 'method_not_allowed' : 'not_found')
    }
    const { status, json: answer } = await endpoint({ method, query: asked.query })
    return jsonReply(status, answer)
  }
  return {
    path: INSPECT_PATH,
    isOpen: (path) => path.startsWith('/page/'),
    serve,
    loginPage() {
      const page = asset('index.html')
      return { headers: { 'content-type': page?.type ?? '' }, body: page?.bytes.toString('utf8') ?? '' }
    },
  }
}

function jsonEndpoints(
  { mode, maxBytes, showClaims }: CaptureOptions,
  surroundings: Surroundings,
  capture: Capture,
): Readonly<Record<string, OpsHandler>> {
  const { version, readiness, routes } = surroundings
  return {
    'GET /api/state': () => ({
      status: 200,
      json: { version, mode, maxBytes, maxRequests: MAX_RECORDS, showClaims, ...surroundings.try.offer() },
    }),
    'GET /api/requests': () => ({ status: 200, json: capture.list() }),
    'GET /api/search': ({ query }) => {
      const text = query.get('text') ?? ''
      if (text === '' || text.length > MAX_SEARCHED) throw new Failure('bad_request', { detail: 'no text to look for' })
      return { status: 200, json: { ids: capture.search(text) } }
    },
    'DELETE /api/requests': () => {
      capture.clear()
      return { status: 204 }
    },
    'GET /api/overview': () => ({
      status: 200,
      json: {
        readiness: readiness(),
        routes: routes().map(({ name, path, type, target }) => ({
          name,
          path,
          type,
          target,
          lastFailure: capture.failures.last(name),
        })),
        failures: capture.failures.series(),
      },
    }),
    'GET /api/cache': surroundings.listCache,
    'DELETE /api/cache': surroundings.purgeCache,
    'GET /api/config': () => ({ status: 200, json: withMaskedQueries(surroundings.config()) }),
  }
}

/** A target's query may hold a key. */
export const withMaskedQueries = (config: object): unknown =>
  JSON.parse(
    JSON.stringify(config, (name, value: unknown) =>
      name === 'query' && typeof value === 'string' ? maskQuery(value) : value,
    ),
  )

function assetResponse(name: string): EndpointResponse {
  const found = asset(name)
  if (found === undefined) throw new Failure('not_found')
  return { status: 200, headers: { 'content-type': found.type }, body: found.bytes }
}

function showOne(capture: Capture, id: string): EndpointResponse {
  const record = capture.find(id)
  if (record === undefined) throw new Failure('not_found')
  return jsonReply(200, describe(record))
}

/** Streams all requests: a snapshot, then changes. */
function streamAll(capture: Capture, streams: EventStreams): EndpointResponse {
  const stream = streams.open()
  if (stream === undefined) throw tooMany()
  stream.send('snapshot', capture.list())
  const unfollow = capture.follow(
    (batch) => stream.send('batch', batch),
    () => stream.send('cleared', {}),
  )
  stream.onClose(unfollow)
  return stream.response
}

/** Streams one request: the whole record on each change, and the response's chunks in between. */
function streamOne(capture: Capture, streams: EventStreams, id: string): EndpointResponse {
  const first = capture.find(id)
  if (first === undefined) throw new Failure('not_found')
  const stream = streams.open()
  if (stream === undefined) throw tooMany()
  stream.send('request', describe(first))
  if (!first.summary.isOpen) {
    stream.send('over', {})
    return stream.response
  }
  const gatherer = createGatherer<string>(1, () => {
    const record = capture.find(id)
    if (record !== undefined) stream.send('request', describe(record))
    if (record?.summary.isOpen !== true) stream.send('over', {})
  })
  const unfollow = capture.followOne(id, (step) => {
    if (step.kind === 'text') stream.send('text', { text: step.text })
    else gatherer.add(id)
  })
  stream.onClose(() => {
    unfollow()
    gatherer.close()
  })
  return stream.response
}

const tooMany = (): Failure =>
  new Failure('overloaded', { detail: 'too many pages of the inspector are open', retryAfterSeconds: 10 })
