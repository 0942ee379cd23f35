import type { ConnectionNeed } from './connections.ts'
import { FAILURES, type FailureCode } from './failures.ts'
import type { ReachedLimit } from './limit.ts'
import { type RuleCode, RULES } from './rules.ts'

/** Challenge parameters of a failure of the caller's token (RFC 6750 §3). */
export interface ChallengeHint {
  /** RFC 6750 error code; absent when the request carried no credentials at all (§3.1). */
  readonly error?: 'invalid_request' | 'invalid_token' | 'insufficient_scope' | 'insufficient_user_authentication'
  readonly scope?: string
  /** Authentication the client must request, and its maximum age in seconds (RFC 9470 §3). */
  readonly acrValues?: string
  readonly maxAge?: number
  /** Step-up that a downstream service requires; sent as a second challenge. */
  readonly stepUp?: StepUp
}

/** The challenge of an authorization server, for clients that log users in there (Entra ID: claims challenge). */
export interface StepUp {
  /** Its authorization endpoint. */
  readonly authorizationUri: string
  /**
   * Base64 of a JSON object, for the parameter `claims` of the authorization request (OpenID Connect Core §5.5);
   * absent when none is required.
   */
  readonly claims?: string | undefined
}

/** Actual and expected token values by claim or header parameter name; strings of at most 200 characters. */
export interface Compared {
  readonly came: Readonly<Record<string, string>>
  readonly wanted: Readonly<Record<string, string>>
}

/** The error response of an authorization server (RFC 6749 §5.2) behind a failure. */
export interface OAuthRefusal {
  readonly status: number
  /** Its `error`; undefined when the response has none. */
  readonly error: string | undefined
}

export interface FailureOptions {
  /** For the log only: the event in the proxy's own words, without external values. */
  readonly detail?: string
  /** For the log only: its `code` and `name`, never its message. */
  readonly cause?: unknown
  /** Whole seconds, sent as Retry-After with any status. */
  readonly retryAfterSeconds?: number
  readonly challenge?: ChallengeHint
  /** Milliseconds for which the failure is cached (negative caching). Default: by the code. */
  readonly refusedForMs?: number | undefined
  /** For the inspector and `extauth check` only; not in responses or logs. */
  readonly compared?: Compared | undefined
  /** The secret that caused the failure, as `NAME/KEY`, so that a configuration error can name its location. */
  readonly secret?: string | undefined
  /** The limit that was reached; responses to oversized bodies state it. */
  readonly limit?: ReachedLimit | undefined
  /** Origin that the failed request was meant for. */
  readonly at?: string | undefined
  /** The error response of the authorization server that caused the failure. */
  readonly refusal?: OAuthRefusal | undefined
  /** The violated rule; its text is the default of `detail`. */
  readonly rule?: RuleCode | undefined
  /** JSON-RPC error code on MCP routes. Default -32000. */
  readonly rpcCode?: number | undefined
  /** The connection that the caller needs, for `not_connected`. */
  readonly connection?: ConnectionNeed | undefined
}

/**
 * The one error class. `code` selects what a client sees (status, public sentence, OAuth error) in the table of
 * `failures.ts`; the other fields go to the log. It has no stack: V8 keeps the functions of each frame, and with them
 * the request and its token, as long as the failure is cached.
 */
export class Failure extends Error {
  readonly code: FailureCode
  readonly detail: string | undefined
  readonly retryAfterSeconds: number | undefined
  readonly challenge: ChallengeHint | undefined
  readonly refusedForMs: number | undefined
  readonly compared: Compared | undefined
  readonly secret: string | undefined
  readonly limit: ReachedLimit | undefined
  readonly at: string | undefined
  readonly refusal: OAuthRefusal | undefined
  readonly rule: RuleCode | undefined
  readonly rpcCode: number | undefined
  readonly connection: ConnectionNeed | undefined

  constructor(code: FailureCode, options: FailureOptions = {}) {
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    const { rule, detail = rule && RULES[rule].detail } = options
    super(detail === undefined ? code : `${code}: ${detail}`, { cause: options.cause })
    Error.stackTraceLimit = stackTraceLimit
    this.name = 'Failure'
    this.code = code
    this.detail = detail
    this.rule = rule
    this.retryAfterSeconds = options.retryAfterSeconds
    this.challenge = options.challenge
    this.refusedForMs = options.refusedForMs
    this.compared = options.compared
    this.secret = options.secret
    this.limit = options.limit
    this.at = options.at
    this.refusal = options.refusal
    this.rpcCode = options.rpcCode
    this.connection = options.connection
  }

  /**
   * The client's message: the table's sentence, with the limit that was reached or the scheme sent instead of a
   * bearer token.
   */
  get sentence(): string {
    const { sentence } = FAILURES[this.code]
    if (this.code === 'missing_token' && this.detail !== undefined)
      return `${sentence.replace(/\.$/, '')}; ${this.detail}.`
    return this.code === 'body_too_large' && this.limit !== undefined
      ? `${sentence} The limit is ${this.limit.amount} bytes.`
      : sentence
  }

  /** HTTP status of this failure, from the table. */
  get status(): number {
    return FAILURES[this.code].status
  }
}

/** Returns a `Failure` as it is and wraps any other error as `internal_error`. */
export function asFailure(error: unknown): Failure {
  return error instanceof Failure ? error : new Failure('internal_error', { cause: error })
}

/**
 * The loggable part of a foreign error: class, kind and code (of its cause if it has none, such as ECONNREFUSED below
 * a failed fetch). The message is left out, because it may quote what was sent.
 */
export function causeOf(error: unknown): { name?: string; kind?: string; code?: string } {
  if (typeof error !== 'object' || error === null) return {}
  const { name, kind, code, cause } = error as { name?: unknown; kind?: unknown; code?: unknown; cause?: unknown }
  const known = typeof code === 'string' || typeof code === 'number' ? String(code) : causeOf(cause).code
  return {
    ...(typeof name === 'string' ? { name } : {}),
    ...(typeof kind === 'string' ? { kind } : {}),
    ...(known === undefined ? {} : { code: known }),
  }
}
