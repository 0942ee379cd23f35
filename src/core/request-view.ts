import { type Claims, NO_CLAIMS } from './caller.ts'

/** Kind of the MCP object a request addresses. */
export type McpKind = 'tool' | 'prompt' | 'resource' | 'other'

/** An MCP request as seen by rules and role mappings. */
export interface McpView {
  /** JSON-RPC method; empty for client responses and for requests without a message. */
  readonly method: string
  readonly kind: McpKind
  /** Tool or prompt; for `completion/complete` the one in `ref`. Empty without one. */
  readonly name: string
  /** Resource, or the template in `ref`. Empty without one. */
  readonly uri: string
  readonly args: Claims
  /** The backend's hints about this tool, from the last list seen by this process. */
  readonly annotations: Claims
}

/** A request without a message, a response of the client, and what is not read. */
export const NO_REQUEST: McpView = Object.freeze({
  method: '',
  kind: 'other',
  name: '',
  uri: '',
  args: NO_CLAIMS,
  annotations: NO_CLAIMS,
})

/** The result field of a list request, whose items are filtered. */
export type ListField = 'tools' | 'prompts' | 'resources' | 'resourceTemplates'

/** A strictly parsed request. */
export interface RequestView {
  readonly mcp: McpView
  /** The subjects to authorize, in order: `mcp`, or each subscribed resource. Empty: no rule applies. */
  readonly subjects: readonly McpView[]
  /** Id of the JSON-RPC request; undefined for notifications, responses and requests without a message. */
  readonly id: string | number | undefined
  readonly list: ListField | undefined
}

/** Filters the body of one response as it streams. */
export interface AnswerFilter {
  /** The bytes stay as they are. */
  readonly isExact: boolean
  /** The head waits for the first bytes that go out, so that what is wrong before them is a failure of its own. */
  readonly isHeld: boolean
  /** The bytes to send for a received chunk. Throws `Failure` for content that must not be sent. */
  push(chunk: Buffer): Buffer
  /**
   * The bytes to send at the end. Throws `Failure` for a truncated response, or one that does not match the request.
   */
  end(): Buffer
}

/**
 * Creates the filter for a response with this head; undefined when the response is not filtered. Throws `Failure` for
 * a rejected response.
 */
export type FilterAnswer = (
  status: number,
  headers: Readonly<Record<string, string | readonly string[] | undefined>>,
) => AnswerFilter | undefined

/** The outcome of one rule. */
export interface RuleStep {
  readonly rule: string
  readonly effect: 'allow' | 'deny'
  readonly outcome: 'matched' | 'not_matched' | 'error' | 'limit' | 'not_evaluated'
  /** Where in the expression an error is, why, and the key that is missing where the expression spells it. */
  readonly position?: { readonly line: number; readonly column: number }
  readonly reason?: string
  readonly missingKey?: string
}

/** Whether a request is allowed, and by which rule. It holds nothing from claims or the request. */
export interface RuleDecision {
  readonly allowed: boolean
  /** Name of the rule that decided; undefined: `default`. */
  readonly rule: string | undefined
  /** Scopes that the rule requires and the token lacks; only if they alone cause the denial. */
  readonly missingScopes: readonly string[]
  readonly steps: readonly RuleStep[]
}
