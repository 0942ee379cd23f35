import { isUtf8 } from 'node:buffer'
import type { OutboundResponse } from '../core/index.ts'
import { KubeError, kubeErrorFrom } from './kube-error.ts'
import { apiVersionOf, type KubeObject, type ResourceType } from './object.ts'

/** One page of a collection. */
export interface Page {
  readonly items: readonly KubeObject[]
  readonly resourceVersion: string
  /** Token of the next page; empty on the last. */
  readonly next: string
}

/** Parses the body of a successful response. Throws `KubeError` (status 0, `malformed`) unless it is JSON in UTF-8. */
export function jsonOf({ body }: Pick<OutboundResponse, 'body'>): unknown {
  if (!isUtf8(body)) throw malformed()
  try {
    return JSON.parse(body.toString('utf8'))
  } catch (cause) {
    throw malformed(cause)
  }
}

/**
 * Parses a page. Items lack kind and version, which the list has. Rejects a response without list or resource version:
 * taken for an empty collection, it would delete everything. Throws `KubeError`.
 */
export function pageOf(answer: unknown, type: ResourceType): Page {
  const { kind, items, metadata } = (answer ?? {}) as {
    kind?: unknown
    items?: unknown
    metadata?: { resourceVersion?: unknown; continue?: string }
  }
  // An empty metadata list has no `items`.
  const found: unknown = items ?? []
  const version = metadata?.resourceVersion
  if (typeof kind === 'string' && !kind.endsWith('List')) throw malformed()
  if (!Array.isArray(found) || !found.every(isObject) || typeof version !== 'string' || version === '')
    throw malformed()
  const apiVersion = apiVersionOf(type)
  return {
    // The response is not shared, so its items are completed in place.
    items: found.map((item) => Object.assign(item, { apiVersion, kind: type.kind })),
    resourceVersion: version,
    next: metadata?.continue ?? '',
  }
}

const EVENTS: ReadonlySet<unknown> = new Set(['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK'])

/** Parses the event of a line; undefined for an unknown type. Throws `KubeError`, also for an `ERROR` event. */
export function eventOf(line: Buffer): WatchEvent | undefined {
  const { type, object } = (jsonOf({ body: line }) ?? {}) as { type?: unknown; object?: unknown }
  if (type === 'ERROR') throw kubeErrorFrom(0, object)
  if (!EVENTS.has(type)) return undefined
  // A bookmark has a version and no name.
  if (!(type === 'BOOKMARK' ? hasMetadata(object) : isObject(object))) throw malformed()
  return { type, object } as WatchEvent
}

const hasMetadata = (value: unknown): value is KubeObject =>
  typeof value === 'object' &&
  value !== null &&
  'metadata' in value &&
  typeof value.metadata === 'object' &&
  value.metadata !== null

const isObject = (value: unknown): value is KubeObject =>
  hasMetadata(value) && typeof value.metadata.name === 'string' && value.metadata.name !== ''

const malformed = (cause?: unknown): KubeError => new KubeError(0, 'malformed', { cause })

const MAX_ERROR_BYTES = 64 * 1024

/** The beginning of an unsuccessful response. */
export async function beginningOf(chunks: AsyncIterable<Buffer>): Promise<Buffer> {
  const parts: Buffer[] = []
  let length = 0
  for await (const chunk of chunks) {
    parts.push(chunk)
    if ((length += chunk.length) > MAX_ERROR_BYTES) break
  }
  return Buffer.concat(parts)
}

/** A watch event. `BOOKMARK` only advances the resource version. */
export interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'
  readonly object: KubeObject
}
