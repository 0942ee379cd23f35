import type { Request } from '../mcp/index.ts'

const MAX_SUBSCRIPTIONS = 1000

/** Requests with a lasting effect on a session (2025-11-25): repeated for its replacement. */
export class ReplayedRequests {
  #level: Request | undefined
  readonly #subscriptions = new Map<string, Request>()

  /** Records a successful request. */
  note(request: Request): void {
    const { method, params } = request
    const { uri } = params
    if (method === 'initialize') this.clear()
    else if (method === 'logging/setLevel') this.#level = request
    else if (typeof uri === 'string' && method === 'resources/unsubscribe') this.#subscriptions.delete(uri)
    else if (typeof uri === 'string' && method === 'resources/subscribe') {
      if (this.#subscriptions.size < MAX_SUBSCRIPTIONS) this.#subscriptions.set(uri, request)
    }
  }

  /** The recorded requests, as sent. */
  list(): readonly Request[] {
    return [...(this.#level === undefined ? [] : [this.#level]), ...this.#subscriptions.values()]
  }

  clear(): void {
    this.#level = undefined
    this.#subscriptions.clear()
  }
}
