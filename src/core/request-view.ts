import type { Claims } from './caller.ts'

/** What an MCP request is about. */
export type McpKind = 'tool' | 'prompt' | 'resource' | 'other'

/** An MCP request as rules and role mappings see it. */
export interface McpView {
  /** JSON-RPC method; empty for responses of the client and for requests without a message. */
  readonly method: string
  readonly kind: McpKind
  /** Tool or prompt; of `completion/complete` the one in `ref`. Empty where there is none. */
  readonly name: string
  /** Resource, or the template in `ref`. Empty where there is none. */
  readonly uri: string
  readonly args: Claims
  /** Hints of the backend about this tool, from the last list of this process. */
  readonly annotations: Claims
}

/** The list that a request asks for: the field of its result, whose items are filtered. */
export type ListField = 'tools' | 'prompts' | 'resources' | 'resourceTemplates'

/** A request that was read strictly. */
export interface RequestView {
  readonly mcp: McpView
  /** What is decided on, one after the other: `mcp`, or each resource that is listened to. Empty: no rule applies. */
  readonly subjects: readonly McpView[]
  /** Id of the JSON-RPC request; undefined for notifications, responses and requests without a message. */
  readonly id: string | number | undefined
  readonly list: ListField | undefined
}

/** Reads the body of one answer as it goes by. */
export interface AnswerFilter {
  /** The bytes stay as they are. */
  readonly isExact: boolean
  /** The head waits for the first bytes that go out, so that what is wrong before them is a failure of its own. */
  readonly isHeld: boolean
  /** What goes out with a piece that has come. Throws `Failure` for what must not go out. */
  push(chunk: Buffer): Buffer
  /** What goes out at the end. Throws `Failure` where the answer is not whole, or not an answer to the request. */
  end(): Buffer
}

/** The filter of an answer with this head; undefined where nothing is looked at. Throws `Failure` for one that is refused. */
export type FilterAnswer = (
  status: number,
  headers: Readonly<Record<string, string | readonly string[] | undefined>>,
) => AnswerFilter | undefined

/** What became of one rule. */
export interface RuleStep {
  readonly rule: string
  readonly effect: 'allow' | 'deny'
  readonly outcome: 'matched' | 'not_matched' | 'error' | 'limit' | 'not_evaluated'
  /** Where in the expression an error is, why, and the key that is missing where the expression spells it. */
  readonly position?: { readonly line: number; readonly column: number }
  readonly reason?: string
  readonly missingKey?: string
}

/** Whether a request is allowed, and by which rule. Nothing in it comes from claims or the request. */
export interface RuleDecision {
  readonly allowed: boolean
  /** Name of the rule that decided; undefined: `default`. */
  readonly rule: string | undefined
  /** Scopes that the rule requires and the token lacks; only where that is why it is not allowed. */
  readonly missingScopes: readonly string[]
  readonly steps: readonly RuleStep[]
}
