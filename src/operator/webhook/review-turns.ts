/** Maximum queued reviews of one namespace. */
const MOST_WAITING = 64
/** Maximum bytes of their bodies. */
const MOST_WAITING_BYTES = 8 * 1024 * 1024
/** Maximum bytes of bodies in progress or queued, all namespaces together. */
const MOST_BYTES = 64 * 1024 * 1024

/** The result of queuing: the turn is granted, the queue is full, or the client disconnected while waiting. */
export type Turn = { readonly is: 'given'; done(): void } | { readonly is: 'busy' | 'gone' }

export interface ReviewTurns {
  /** One review at a time per namespace, in order; `bytes` is the length of its body. */
  take(namespace: string, bytes: number, signal: AbortSignal): Promise<Turn>
}

interface Waiting {
  readonly bytes: number
  readonly start: () => void
}

/** Isolates namespaces from each other: one review of each runs at a time, and a bounded number waits. */
export function createReviewTurns(): ReviewTurns {
  /** Queues by namespace with a review in progress. */
  const lines = new Map<string, Waiting[]>()
  let held = 0

  const given = (namespace: string, bytes: number): Turn => {
    let isDone = false
    return {
      is: 'given',
      done() {
        if (isDone) return
        isDone = true
        held -= bytes
        const next = lines.get(namespace)?.shift()
        if (next === undefined) lines.delete(namespace)
        else next.start()
      },
    }
  }
  return {
    take(namespace, bytes, signal) {
      if (signal.aborted) return Promise.resolve({ is: 'gone' })
      if (held + bytes > MOST_BYTES) return Promise.resolve({ is: 'busy' })
      const line = lines.get(namespace)
      if (line === undefined) {
        lines.set(namespace, [])
        held += bytes
        return Promise.resolve(given(namespace, bytes))
      }
      const waiting = line.reduce((sum, one) => sum + one.bytes, bytes)
      if (line.length >= MOST_WAITING || waiting > MOST_WAITING_BYTES) return Promise.resolve({ is: 'busy' })
      held += bytes
      return new Promise((resolve) => {
        const leave = (): void => {
          line.splice(line.indexOf(entry), 1)
          held -= bytes
          resolve({ is: 'gone' })
        }
        const entry: Waiting = {
          bytes,
          start() {
            signal.removeEventListener('abort', leave)
            resolve(given(namespace, bytes))
          },
        }
        line.push(entry)
        signal.addEventListener('abort', leave, { once: true })
      })
    },
  }
}
