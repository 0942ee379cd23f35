/** Commands of the load generator, one at a time. */
export type Command =
  /** POSTs of `size` bytes over so many connections for so long. Gives `LoadResult`. */
  | {
      readonly kind: 'load'
      readonly url: string
      readonly size: number
      readonly connections: number
      readonly ms: number
      /** Values of `Authorization` that the requests have in turn; none without. */
      readonly authorizations?: readonly string[] | undefined
      /** Requests that were prepared under this name, each in turn, going on where the last load ended. */
      readonly prepared?: string | undefined
    }
  /** Makes requests that differ, once: thousands are too many to be handed over with each load. */
  | {
      readonly kind: 'prepare'
      readonly name: string
      readonly url: string
      readonly size: number
      /** Paths and values of `Authorization`, each in turn; default: those of the URL, and none. */
      readonly paths?: readonly string[] | undefined
      readonly authorizations?: readonly string[] | undefined
      /** The tool that each request calls, in a JSON-RPC message of this size. Default: the body is a string. */
      readonly tool?: string | undefined
    }
  /** Opens event streams and keeps them. */
  | { readonly kind: 'open-idle'; readonly url: string; readonly count: number }
  /** Opens connections that are kept after one POST of 1 KiB each. */
  | { readonly kind: 'open-kept'; readonly url: string; readonly count: number }
  /** Closes both. */
  | { readonly kind: 'close-idle'; readonly url: string }
  /** Delay from an event's writing to its arrival over so many streams. Gives `EventsResult`. */
  | { readonly kind: 'events'; readonly url: string; readonly count: number; readonly ms: number }
  /** Delay from a request to its first event, so many times. Gives `EventsResult`. */
  | { readonly kind: 'first-events'; readonly url: string; readonly count: number }

export interface LoadResult {
  readonly requests: number
  readonly seconds: number
  readonly p50Ms: number
  readonly p99Ms: number
}

export interface EventsResult {
  readonly count: number
  readonly p50Ms: number
  readonly p99Ms: number
}
