import { OutboundError, type Secret } from '../core/index.ts'
import type { ApiClient, ApiRequest } from '../net/index.ts'
import { beginningOf, eventOf, jsonOf, pageOf, type WatchEvent } from './answers.ts'
import { createHoldOff } from './hold-off.ts'
import { isExpired, KubeError, kubeErrorOf } from './kube-error.ts'
import { readLines } from './lines.ts'
import { type KubeObject, pathOf, type ResourceType } from './object.ts'

export interface KubeClientOptions {
  readonly api: ApiClient
  /** Bearer token, read for each request (projected tokens change); undefined with a client certificate. */
  readonly token: () => Secret | undefined
  /** Field manager of server-side apply, also in the audit log. */
  readonly fieldManager: string
  readonly userAgent: string
  /** Request timeout in milliseconds. Default 10,000. */
  readonly deadlineMs?: number
}

export interface ListPage {
  readonly items: readonly KubeObject[]
  readonly resourceVersion: string
}

export interface Selection {
  /** Default: all namespaces. */
  readonly namespace?: string | undefined
  readonly labelSelector?: string | undefined
  readonly fieldSelector?: string | undefined
  /** Requests only `metadata` of each object (`PartialObjectMetadata`). */
  readonly metadataOnly?: boolean | undefined
}

export interface CallOptions {
  /** Timeout of this request in milliseconds. Default: the client's. */
  readonly deadlineMs?: number | undefined
}

export interface WriteOptions extends CallOptions {
  readonly subresource?: string
  /** Validates without storing. */
  readonly dryRun?: boolean
  /** Server-side apply takes fields owned by others. Default true: drift is reverted. */
  readonly force?: boolean
  /** Field manager instead of the client's. */
  readonly fieldManager?: string
}

/**
 * The used verbs of the API server. All throw `KubeError`, with status 0 for no usable response. After a 429 or 5xx
 * with `Retry-After`, requests of the same verb and resource are rejected with 429 until its time.
 */
export interface KubeClient {
  readonly fieldManager: string
  get(type: ResourceType, namespace: string | undefined, name: string, options?: CallOptions): Promise<KubeObject>
  /** Lists all objects in pages of 500; in one page if the version of the first one expires meanwhile (410). */
  list(type: ResourceType, selection: Selection): Promise<ListPage>
  /**
   * Yields events after `resourceVersion` until the server ends the response; throws `ERROR` events. `silenceMs` is
   * the maximum time without a complete event.
   */
  watch(
    type: ResourceType,
    selection: Selection,
    options: {
      readonly resourceVersion: string
      readonly seconds: number
      readonly silenceMs: number
      readonly signal: AbortSignal
      /** The server has accepted the watch; events may follow much later. */
      readonly onOpen?: () => void
    },
  ): AsyncGenerator<WatchEvent>
  /** Server-side apply of exactly these fields. */
  apply(type: ResourceType, object: KubeObject, options?: WriteOptions): Promise<KubeObject>
  create(type: ResourceType, object: KubeObject, options?: WriteOptions): Promise<KubeObject>
  /** Replaces an object; its `resourceVersion` must be the stored one (else 409 `Conflict`). */
  update(type: ResourceType, object: KubeObject, options?: WriteOptions): Promise<KubeObject>
  /** JSON merge patch (RFC 7396). */
  merge(
    type: ResourceType,
    namespace: string | undefined,
    name: string,
    patch: object,
    options?: WriteOptions,
  ): Promise<KubeObject>
  /** Deletes in the background; with `uid`, only that object. Ignores a missing one. */
  remove(type: ResourceType, namespace: string | undefined, name: string, uid?: string): Promise<void>
  /** Requests any other path (`TokenRequest`, discovery, JWKS) as JSON. */
  raw(method: ApiRequest['method'], path: string, body?: object): Promise<unknown>
}

const PAGE = 500
const MAX_ANSWER_BYTES = 64 * 1024 * 1024
const DEFAULT_DEADLINE_MS = 10_000
/** A server accepts a watch at once, or after queueing it. */
const WATCH_HEAD_MS = 30_000
const METADATA_LIST = 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json'
const METADATA = 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json'

/** Creates a client for one API server. */
export function createKubeClient(options: KubeClientOptions): KubeClient {
  const { api, fieldManager } = options
  const deadlineMs = options.deadlineMs ?? DEFAULT_DEADLINE_MS

  const headersFor = (accept: string, contentType?: string): Record<string, string> => {
    const token = options.token()
    return {
      accept,
      'user-agent': options.userAgent,
      ...(token === undefined ? {} : { authorization: `Bearer ${token.reveal()}` }),
      ...(contentType === undefined ? {} : { 'content-type': contentType }),
    }
  }

  const holdOff = createHoldOff()

  /** Sends one request unless the server asked to wait for its kind. */
  const send = async (
    kind: string,
    method: ApiRequest['method'],
    path: string,
    { body, contentType = 'application/json', accept = 'application/json', ...call }: Sent = {},
  ): Promise<unknown> => {
    holdOff.check(kind)
    const headers = headersFor(accept, body === undefined ? undefined : contentType)
    const text = body === undefined ? undefined : JSON.stringify(body)
    const bounds = { deadlineMs: call.deadlineMs ?? deadlineMs, maxBytes: MAX_ANSWER_BYTES }
    const answer = await answered(api.request({ method, path, headers, body: text }, bounds))
    if (answer.status >= 300) {
      const error = kubeErrorOf(answer.status, answer.body, answer.headers['retry-after'])
      holdOff.note(kind, error)
      throw error
    }
    return jsonOf(answer)
  }

  const write = async (
    method: 'POST' | 'PUT' | 'PATCH',
    type: ResourceType,
    path: string,
    body: object,
    { subresource, dryRun, force, fieldManager: manager, deadlineMs: ownDeadlineMs }: WriteOptions = {},
    contentType = 'application/json',
  ): Promise<KubeObject> => {
    const query = new URLSearchParams({ fieldManager: manager ?? fieldManager })
    if (dryRun === true) query.set('dryRun', 'All')
    if (contentType.startsWith('application/apply-patch')) query.set('force', String(force ?? true))
    const kind = kindOf(method, type, subresource)
    const sent: Sent = { body, contentType, deadlineMs: ownDeadlineMs }
    return (await send(kind, method, `${path}?${query.toString()}`, sent)) as KubeObject
  }

  /** Lists all pages; `limit` 0 requests everything at once. */
  const listPages = async (type: ResourceType, selection: Selection, limit: number): Promise<ListPage> => {
    const items: KubeObject[] = []
    let resourceVersion = ''
    let next = ''
    do {
      const paging = { ...(limit === 0 ? {} : { limit: String(limit) }), ...(next === '' ? {} : { continue: next }) }
      const path = `${pathOf(type, selection.namespace)}?${queryOf(selection, paging).toString()}`
      const accept = selection.metadataOnly === true ? METADATA_LIST : 'application/json'
      let answer: unknown
      try {
        answer = await send(kindOf('LIST', type), 'GET', path, { accept })
      } catch (error) {
        // If versions expire faster than pages are read, only one large page completes.
        if (next === '' || !isExpired(error)) throw error
        return listPages(type, selection, 0)
      }
      const page = pageOf(answer, type)
      items.push(...page.items)
      resourceVersion = page.resourceVersion
      next = page.next
    } while (next !== '')
    return { items, resourceVersion }
  }

  return {
    fieldManager,
    get: async (type, namespace, name, options) =>
      (await send(kindOf('GET', type), 'GET', pathOf(type, namespace, name), options)) as KubeObject,
    list: (type, selection) => listPages(type, selection, PAGE),
    async *watch(type, selection, { resourceVersion, seconds, silenceMs, signal, onOpen }) {
      const query = queryOf(selection, {
        watch: '1',
        allowWatchBookmarks: 'true',
        resourceVersion,
        timeoutSeconds: String(seconds),
      })
      const accept = selection.metadataOnly === true ? METADATA : 'application/json'
      const path = `${pathOf(type, selection.namespace)}?${query.toString()}`
      const kind = kindOf('WATCH', type)
      holdOff.check(kind)
      const bounds = { headMs: Math.min(WATCH_HEAD_MS, silenceMs), silenceMs }
      const stream = await answered(api.stream({ method: 'GET', path, headers: headersFor(accept) }, bounds))
      const close = (): void => stream.close()
      signal.addEventListener('abort', close)
      // A line that arrives slowly, byte by byte, is not an event.
      const silence = setTimeout(close, silenceMs)
      silence.unref()
      try {
        if (signal.aborted) return
        if (stream.status !== 200) {
          const error = kubeErrorOf(stream.status, await beginningOf(stream.chunks), stream.headers['retry-after'])
          holdOff.note(kind, error)
          throw error
        }
        onOpen?.()
        for await (const line of readLines(stream.chunks)) {
          silence.refresh()
          const event = eventOf(line)
          if (event !== undefined) yield event
        }
      } catch (error) {
        if (signal.aborted) return
        throw error instanceof KubeError ? error : new KubeError(0, '', { cause: error })
      } finally {
        clearTimeout(silence)
        signal.removeEventListener('abort', close)
        close()
      }
    },
    apply: (type, object, options) =>
      write(
        'PATCH',
        type,
        pathFor(type, object, options),
        withoutVersion(object),
        options,
        'application/apply-patch+yaml',
      ),
    create: (type, object, options) => write('POST', type, pathOf(type, object.metadata.namespace), object, options),
    update: (type, object, options) => write('PUT', type, pathFor(type, object, options), object, options),
    merge: (type, namespace, name, patch, options) =>
      write(
        'PATCH',
        type,
        pathOf(type, namespace, name, options?.subresource),
        patch,
        options,
        'application/merge-patch+json',
      ),
    async remove(type, namespace, name, uid) {
      const body = { propagationPolicy: 'Background', ...(uid === undefined ? {} : { preconditions: { uid } }) }
      try {
        await send(kindOf('DELETE', type), 'DELETE', pathOf(type, namespace, name), { body })
      } catch (error) {
        if (!(error instanceof KubeError && error.status === 404)) throw error
      }
    },
    raw: (method, path, body) => send(`${method} ${path}`, method, path, body === undefined ? {} : { body }),
  }
}

interface Sent extends CallOptions {
  readonly body?: object
  readonly contentType?: string
  readonly accept?: string
}

/** Unit of a cool-down: a verb on a resource. */
const kindOf = (verb: string, { group, plural }: ResourceType, subresource = ''): string =>
  [verb, group, plural, subresource].join(' ')

const pathFor = (type: ResourceType, { metadata }: KubeObject, options: WriteOptions = {}): string =>
  pathOf(type, metadata.namespace, metadata.name, options.subresource)

/** An apply has fields and no version: with one, it would conflict with any other write. */
function withoutVersion(object: KubeObject): KubeObject {
  const { resourceVersion: _version, managedFields: _fields, ...metadata } = object.metadata
  return { ...object, metadata }
}

function queryOf(selection: Selection, more: Record<string, string>): URLSearchParams {
  const query = new URLSearchParams(more)
  if (selection.labelSelector !== undefined) query.set('labelSelector', selection.labelSelector)
  if (selection.fieldSelector !== undefined) query.set('fieldSelector', selection.fieldSelector)
  return query
}

async function answered<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer
  } catch (cause) {
    if (cause instanceof OutboundError) throw new KubeError(0, cause.kind, { cause })
    throw cause
  }
}
