import type { Part } from './excuses.ts'

/** The header by which the backend knows to which call a request belongs. */
export const CALL_HEADER = 'x-endure-call'

/** Required content of a request at the backend. */
export interface Expected {
  /** Members of what the backend verified, as JSON: `claims.sub`, `roleArn`, `tags.User`, … */
  readonly verified: Readonly<Record<string, string>>
  /** A header that is compared by the given function, where the backend itself demands nothing. */
  readonly header?: { readonly name: string; readonly isGood: (value: string) => boolean }
  /** Whether the backend gets a credential in `Authorization` at all. */
  readonly hasCredential: boolean
}

/** The required result of a tool call. */
export type Expectation =
  | { readonly kind: 'own request' }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'bytes'; readonly bytes: number }
  | { readonly kind: 'steps'; readonly steps: number }
  /** The names of these servers, all of them, in this order. */
  | { readonly kind: 'servers'; readonly names: readonly string[] }
  /** The backend's status is converted to one of these, as `status reason`. */
  | { readonly kind: 'refusal'; readonly reasons: readonly string[] }
  /** A link for connecting an account, and the backend gets nothing; `orServed`: or the caller's own request. */
  | { readonly kind: 'prompt'; readonly orServed: boolean }
  /** Anything that is whole: of the protocol, not of a tool. */
  | { readonly kind: 'anything' }

/** A request of a caller, and its required outcome. */
export interface Call {
  /** Also the id of the JSON-RPC request. */
  readonly id: string
  readonly caller: string
  readonly route: string
  readonly needs: readonly Part[]
  /** Required rejection; undefined: it must be served. */
  readonly refusal: readonly string[] | undefined
  /** When the token ended that must be refused for it, in milliseconds of `performance.now()`. */
  readonly tokenEndedAt?: number | undefined
  /** Whether to do it twice is another thing than to do it once. */
  readonly isUnsafe: boolean
  /** It ends a session by DELETE, which is repeated when its answer is lost: who did it once finds nothing the second time. */
  readonly endsSession?: boolean
  readonly expected: Expected
  readonly expectation: Expectation
  /** SHA-256 of the body that was sent; undefined where there is none. */
  readonly digest: string | undefined
  /** The caller's own credential, which must not get further than to the proxy. */
  readonly token: string | undefined
  /** When the caller came, in milliseconds of `performance.now()`. */
  readonly callerSince: number
  /** In milliseconds of `performance.now()`. */
  readonly startedAt: number
}

/** The response. */
export interface Outcome {
  readonly endedAt: number
  /** 0: no head came. */
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
  /** Why the answer is not whole; undefined: it ended as an answer ends. */
  readonly cut: string | undefined
}
