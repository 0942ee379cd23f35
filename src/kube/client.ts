import { OutboundError, type OutboundResponse, type Secret } from '../core/index.ts'
import type { ApiClient, ApiRequest } from '../net/index.ts'
import { KubeError, kubeErrorFrom, kubeErrorOf } from './kube-error.ts'
import { readLines } from './lines.ts'
import { type KubeObject, pathOf, type ResourceType } from './object.ts'

export interface KubeClientOptions {
  readonly api: ApiClient
  /** Bearer for each request, read anew each time (projected tokens change); undefined with a client certificate. */
  readonly token: () => Secret | undefined
  /** Who writes, in server-side apply and in the audit log. */
  readonly fieldManager: string
  readonly userAgent: string
  /** Milliseconds for one request. Default 10,000. */
  readonly deadlineMs?: number
}

/** One event of a watch: `BOOKMARK` only moves the resource version on. */
export interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'
  readonly object: KubeObject
}

export interface ListPage {
  readonly items: readonly KubeObject[]
  readonly resourceVersion: string
}

export interface Selection {
  /** Absent: all namespaces. */
  readonly namespace?: string | undefined
  readonly labelSelector?: string | undefined
  readonly fieldSelector?: string | undefined
  /** Only `metadata` of each object is asked for (`PartialObjectMetadata`). */
  readonly metadataOnly?: boolean | undefined
}

export interface WriteOptions {
  readonly subresource?: string
  /** Refuses nothing and stores nothing, but answers as if it had. */
  readonly dryRun?: boolean
  /** Server-side apply takes over fields that others own. Default true: drift is put back. */
  readonly force?: boolean
}

/** The API server's verbs that we use. All throw `KubeError`; status 0 when there was no usable answer. */
export interface KubeClient {
  readonly fieldManager: string
  get(type: ResourceType, namespace: string | undefined, name: string): Promise<KubeObject>
  /** All objects, in pages of 500. */
  list(type: ResourceType, selection: Selection): Promise<ListPage>
  /** Events after `resourceVersion` until the server ends the answer; `ERROR` events are thrown. */
  watch(
    type: ResourceType,
    selection: Selection,
    options: {
      readonly resourceVersion: string
      readonly seconds: number
      readonly silenceMs: number
      readonly signal: AbortSignal
      /** The server has taken the watch; events may be long in coming. */
      readonly onOpen?: () => void
    },
  ): AsyncGenerator<WatchEvent>
  /** Server-side apply of exactly these fields. */
  apply(type: ResourceType, object: KubeObject, options?: WriteOptions): Promise<KubeObject>
  create(type: ResourceType, object: KubeObject, options?: WriteOptions): Promise<KubeObject>
  /** Replaces; the object's `resourceVersion` must be the stored one (409 `Conflict` otherwise). */
  update(type: ResourceType, object: KubeObject, options?: WriteOptions): Promise<KubeObject>
  /** JSON merge patch (RFC 7396). */
  merge(
    type: ResourceType,
    namespace: string | undefined,
    name: string,
    patch: object,
    options?: WriteOptions,
  ): Promise<KubeObject>
  /** Background deletion; with `uid` only that very object. A missing one is fine. */
  remove(type: ResourceType, namespace: string | undefined, name: string, uid?: string): Promise<void>
  /** Any other path of the server (`TokenRequest`, discovery, JWKS), as JSON. */
  raw(method: ApiRequest['method'], path: string, body?: object): Promise<unknown>
}

const PAGE = 500
const MAX_ANSWER_BYTES = 64 * 1024 * 1024
const DEFAULT_DEADLINE_MS = 10_000
const METADATA_LIST = 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json'
const METADATA = 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json'

/** A client for one API server. */
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

  const send = async (
    method: ApiRequest['method'],
    path: string,
    {
      body,
      contentType = 'application/json',
      accept = 'application/json',
    }: { body?: object; contentType?: string; accept?: string } = {},
  ): Promise<unknown> => {
    const headers = headersFor(accept, body === undefined ? undefined : contentType)
    const text = body === undefined ? undefined : JSON.stringify(body)
    const answer = await answered(
      api.request({ method, path, headers, body: text }, { deadlineMs, maxBytes: MAX_ANSWER_BYTES }),
    )
    if (answer.status >= 300) throw kubeErrorOf(answer.status, answer.body, answer.headers['retry-after'])
    return jsonOf(answer)
  }

  const write = async (
    method: 'POST' | 'PUT' | 'PATCH',
    path: string,
    body: object,
    write: WriteOptions = {},
    contentType = 'application/json',
  ): Promise<KubeObject> => {
    const query = new URLSearchParams({ fieldManager })
    if (write.dryRun === true) query.set('dryRun', 'All')
    if (contentType.startsWith('application/apply-patch')) query.set('force', String(write.force ?? true))
    return (await send(method, `${path}?${query.toString()}`, { body, contentType })) as KubeObject
  }

  return {
    fieldManager,
    get: async (type, namespace, name) => (await send('GET', pathOf(type, namespace, name))) as KubeObject,
    async list(type, selection) {
      const items: KubeObject[] = []
      let resourceVersion = ''
      let next = ''
      do {
        const query = queryOf(selection, { limit: String(PAGE), ...(next === '' ? {} : { continue: next }) })
        const accept = selection.metadataOnly === true ? METADATA_LIST : 'application/json'
        const page = pageOf(
          await send('GET', `${pathOf(type, selection.namespace)}?${query.toString()}`, { accept }),
          type,
        )
        items.push(...page.items)
        resourceVersion = page.resourceVersion
        next = page.next
      } while (next !== '')
      return { items, resourceVersion }
    },
    async *watch(type, selection, { resourceVersion, seconds, silenceMs, signal, onOpen }) {
      const query = queryOf(selection, {
        watch: '1',
        allowWatchBookmarks: 'true',
        resourceVersion,
        timeoutSeconds: String(seconds),
      })
      const accept = selection.metadataOnly === true ? METADATA : 'application/json'
      const path = `${pathOf(type, selection.namespace)}?${query.toString()}`
      const stream = await answered(api.stream({ method: 'GET', path, headers: headersFor(accept) }, { silenceMs }))
      const close = (): void => stream.close()
      signal.addEventListener('abort', close)
      try {
        if (signal.aborted) return
        if (stream.status !== 200) throw kubeErrorOf(stream.status, await readAll(stream.chunks))
        onOpen?.()
        for await (const line of readLines(stream.chunks)) {
          const event = eventOf(line)
          if (event !== undefined) yield event
        }
      } catch (error) {
        if (signal.aborted) return
        throw error instanceof KubeError ? error : new KubeError(0, '', { cause: error })
      } finally {
        signal.removeEventListener('abort', close)
        close()
      }
    },
    apply: (type, object, options) =>
      write('PATCH', pathFor(type, object, options), withoutVersion(object), options, 'application/apply-patch+yaml'),
    create: (type, object, options) => write('POST', pathOf(type, object.metadata.namespace), object, options),
    update: (type, object, options) => write('PUT', pathFor(type, object, options), object, options),
    merge: (type, namespace, name, patch, options) =>
      write(
        'PATCH',
        pathOf(type, namespace, name, options?.subresource),
        patch,
        options,
        'application/merge-patch+json',
      ),
    async remove(type, namespace, name, uid) {
      const body = { propagationPolicy: 'Background', ...(uid === undefined ? {} : { preconditions: { uid } }) }
      try {
        await send('DELETE', pathOf(type, namespace, name), { body })
      } catch (error) {
        if (!(error instanceof KubeError && error.status === 404)) throw error
      }
    },
    raw: (method, path, body) => send(method, path, body === undefined ? {} : { body }),
  }
}

const pathFor = (type: ResourceType, { metadata }: KubeObject, options: WriteOptions = {}): string =>
  pathOf(type, metadata.namespace, metadata.name, options.subresource)

/** An apply names fields, not a version: with one it would be refused whenever anybody else has written. */
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

function jsonOf(answer: OutboundResponse): unknown {
  try {
    return JSON.parse(answer.body.toString('utf8'))
  } catch (cause) {
    throw new KubeError(0, 'malformed', { cause })
  }
}

/** A page; items of a list come without kind and version, which belong to all of them. */
function pageOf(answer: unknown, type: ResourceType): ListPage & { readonly next: string } {
  const { items, metadata } = answer as { items?: unknown; metadata?: { resourceVersion?: string; continue?: string } }
  // An empty list of metadata has no items at all.
  const found: unknown = items ?? []
  if (!Array.isArray(found) || metadata === undefined) throw new KubeError(0, 'malformed')
  const apiVersion = type.group === '' ? type.version : `${type.group}/${type.version}`
  return {
    // The answer is ours alone, so its items are completed in place.
    items: found.map((item) => Object.assign(item as KubeObject, { apiVersion, kind: type.kind })),
    resourceVersion: metadata.resourceVersion ?? '',
    next: metadata.continue ?? '',
  }
}

const EVENTS: ReadonlySet<unknown> = new Set(['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK'])

/** Half lines end the watch (something was lost); events that we don't know are passed over. Throws `KubeError`. */
function eventOf(line: string): WatchEvent | undefined {
  let event: { type?: unknown; object?: unknown }
  try {
    event = JSON.parse(line) as typeof event
  } catch (cause) {
    throw new KubeError(0, 'malformed', { cause })
  }
  if (event.type === 'ERROR') throw kubeErrorFrom(0, event.object)
  if (!EVENTS.has(event.type) || typeof event.object !== 'object' || event.object === null) return undefined
  return event as WatchEvent
}

const MAX_ERROR_BYTES = 64 * 1024

async function readAll(chunks: AsyncIterable<Buffer>): Promise<Buffer> {
  const parts: Buffer[] = []
  let length = 0
  for await (const chunk of chunks) {
    parts.push(chunk)
    if ((length += chunk.length) > MAX_ERROR_BYTES) break
  }
  return Buffer.concat(parts)
}
