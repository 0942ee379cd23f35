import { Readable } from 'node:stream'
import type { EndpointResponse } from '../core/index.ts'

/** Batching interval of changes in milliseconds: a busy proxy sends few large events. */
const GATHER_MS = 100
/** A slow page is disconnected; it reconnects automatically. */
const MAX_UNREAD = 4 * 1024 * 1024
/** Interval of comments that keep an idle connection open. */
const HEARTBEAT_MS = 15_000
const MAX_STREAMS = 32

/** An event stream to one page. */
export interface EventStream {
  /** The response that carries the stream. */
  readonly response: EndpointResponse
  send(event: string, data: unknown): void
  /** Calls back once, when the page disconnects. */
  onClose(listener: () => void): void
}

/** The open event streams of all pages. */
export interface EventStreams {
  /** Undefined if the limit is reached. */
  open(): EventStream | undefined
  closeAll(): void
}

const HEADERS = { 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no' }

/** Event streams as the WHATWG HTML standard has them (server-sent events). */
export function createEventStreams(): EventStreams {
  const open = new Set<Readable>()
  const heartbeat = setInterval(() => {
    for (const stream of open) stream.push(': still here\n\n')
  }, HEARTBEAT_MS)
  heartbeat.unref()
  return {
    open() {
      if (open.size >= MAX_STREAMS) return undefined
      const stream = new Readable({ read() {} })
      open.add(stream)
      stream.push('retry: 1000\n\n')
      stream.once('close', () => void open.delete(stream))
      return {
        response: { status: 200, headers: HEADERS, body: stream },
        send(event, data) {
          if (!open.has(stream)) return
          if (stream.readableLength > MAX_UNREAD) stream.destroy()
          else stream.push(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
        },
        onClose: (listener) => void stream.once('close', listener),
      }
    },
    closeAll() {
      clearInterval(heartbeat)
      for (const stream of open) stream.push(null)
      open.clear()
    },
  }
}

/** Batches changes and passes on the newest `most` of them, at most ten times a second. */
export interface Gatherer<T> {
  add(item: T): void
  close(): void
}

/** `flush` gets each change once, and the number of oldest ones that were omitted. */
export function createGatherer<T>(most: number, flush: (items: readonly T[], left: number) => void): Gatherer<T> {
  const items = new Set<T>()
  let left = 0
  let timer: NodeJS.Timeout | undefined
  const run = (): void => {
    timer = undefined
    const all = [...items]
    const out = left
    items.clear()
    left = 0
    flush(all, out)
  }
  return {
    add(item) {
      items.delete(item)
      items.add(item)
      if (items.size > most) {
        for (const oldest of items) {
          items.delete(oldest)
          left++
          break
        }
      }
      timer ??= setTimeout(run, GATHER_MS).unref()
    },
    close() {
      clearTimeout(timer)
      items.clear()
    },
  }
}
