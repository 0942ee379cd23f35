import type { Request } from '../mcp/index.ts'

const MAX_SUBSCRIPTIONS = 1000

/** What a client has asked of a session for as long as it lasts (2025-11-25): asked again of the one that replaces it. */
export class Standing {
  #level: Request | undefined
  readonly #subscriptions = new Map<string, Request>()

  /** The server said yes to this request. */
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

  /** To be sent as they were. */
  list(): readonly Request[] {
    return [...(this.#level === undefined ? [] : [this.#level]), ...this.#subscriptions.values()]
  }

  clear(): void {
    this.#level = undefined
    this.#subscriptions.clear()
  }
}
