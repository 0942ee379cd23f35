import { FAILURES, type FailureCode } from './failures.ts'
import type { ReachedLimit } from './limit.ts'
import { type RuleCode, RULES } from './rules.ts'

/** What a challenge adds to a failure of the caller's token (RFC 6750 §3). */
export interface ChallengeHint {
  /** RFC 6750 error code; absent when the request carried no credentials at all (§3.1). */
  readonly error?: 'invalid_request' | 'invalid_token' | 'insufficient_scope' | 'insufficient_user_authentication'
  readonly scope?: string
  /** How the caller has to log in, and how long ago at most, in seconds (RFC 9470 §3). */
  readonly acrValues?: string
  readonly maxAge?: number
  /** What a service behind us wants of another login; it is said in a second challenge. */
  readonly stepUp?: StepUp
}

/** The challenge of an authorization server, for clients that log users in there (Entra ID: claims challenge). */
export interface StepUp {
  /** Its authorization endpoint. */
  readonly authorizationUri: string
  /** A JSON object in base64, for the parameter `claims` of the authorization request (OpenID Connect Core §5.5); absent: it names none. */
  readonly claims?: string | undefined
}

/** What a token says and what would have been taken, by the names of claims and header parameters; texts of at most 200 characters. */
export interface Compared {
  readonly came: Readonly<Record<string, string>>
  readonly wanted: Readonly<Record<string, string>>
}

/** The error response of an authorization server (RFC 6749 §5.2) behind a failure. */
export interface OAuthRefusal {
  readonly status: number
  /** Its `error`; undefined where the response has none. */
  readonly error: string | undefined
}

export interface FailureOptions {
  /** For the log only: what happened, in our words, without values from outside. */
  readonly detail?: string
  /** For the log only (its `code` and `name`, never its text). */
  readonly cause?: unknown
  /** Whole seconds, sent as Retry-After whatever the status. */
  readonly retryAfterSeconds?: number
  readonly challenge?: ChallengeHint
  /** For so many milliseconds asking again is refused too, because it would bring the same answer. Default: by the code. */
  readonly refusedForMs?: number | undefined
  /** For who looks into it on the inspector's page or with `extauth check`; in no answer and no log. */
  readonly compared?: Compared | undefined
  /** The secret that is in the way, as `NAME/KEY`: whoever builds a configuration finds the place of the reference by it. */
  readonly secret?: string | undefined
  /** What was reached; answers to bodies that are too large name it. */
  readonly limit?: ReachedLimit | undefined
  /** Where a request was to go that did not get there: an origin. */
  readonly at?: string | undefined
  /** The error response of an authorization server that the failure stands for. */
  readonly refusal?: OAuthRefusal | undefined
  /** The rule that was broken; its words are the default of `detail`. */
  readonly rule?: RuleCode | undefined
  /** JSON-RPC error code on MCP routes. Default -32000. */
  readonly rpcCode?: number | undefined
}

/**
 * The one error class. What a client sees (status, public sentence, OAuth error) is looked up by `code` in the table of
 * `failures.ts`; what is in here beside the code goes to the log. It has no stack: V8 keeps the functions of each frame, and
 * with them the request and its token, for as long as somebody remembers the refusal.
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
  }

  /** What a client is told: the table's sentence, with the limit that was reached, or the scheme that was sent instead of a token. */
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

/** The failure in hand, or `internal_error` around anything that should never have been thrown. */
export function asFailure(error: unknown): Failure {
  return error instanceof Failure ? error : new Failure('internal_error', { cause: error })
}

/**
 * What may be logged of a foreign error: its class, its kind and its code (its cause's where it has none, such as
 * ECONNREFUSED below a failed fetch); never its text, which may quote what was sent.
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
