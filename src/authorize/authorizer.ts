import {
  type Authorize,
  type ClientRequest,
  Failure,
  type Known,
  type Metrics,
  type RequestView,
  type RuleDecision,
} from '../core/index.ts'
import { isUtf8Json, removeHeaders } from '../http/index.ts'
import type { Authorization } from '../resources/index.ts'
import { createAnswerFilter } from './answer-filter.ts'
import type { BackendMemory } from './protocol-memory.ts'
import { admitRequest, readRequest } from './read-request.ts'
import { compileRules } from './rules.ts'

export interface AuthorizerOptions {
  readonly route: string
  /** Absent: requests are read, because something else needs what they say, and all are allowed. */
  readonly authorization: Authorization | undefined
  /** Bytes of a body that is read. */
  readonly limitBytes: number
  readonly metrics: Metrics
  readonly memory: BackendMemory
  /** Requests that are no JSON-RPC messages pass unread. Only without `authorization`. Default false. */
  readonly passesOthers?: boolean
  /** Gets each decision of a rule or of `default`. */
  readonly onDecision?: (known: Known, view: RequestView, decision: RuleDecision) => void
}

/** The metric label of a decision by no rule. */
const DEFAULT = 'default'
const ACCEPT_ENCODING: ReadonlySet<string> = new Set(['accept-encoding'])

/**
 * The stage between `authenticate` and `obtain` on routes whose requests are read: reads the message strictly, and decides
 * by the rules. Throws `bad_request`, `not_allowed` and `insufficient_scope`; the factory throws `config_error`.
 */
export function createAuthorizer(options: AuthorizerOptions): Authorize {
  const { route, authorization, memory, onDecision, passesOthers = false } = options
  const rules = authorization === undefined ? undefined : compileRules(authorization)
  const decisions = options.metrics.counter(
    'extauth_rules_total',
    'Decisions on MCP requests, by the rule that decided (`default`: none matched) and what came of it: allowed, denied, scope_missing; and rules that could not be evaluated: error, limit.',
    ['route', 'rule', 'outcome'],
  )
  const series = new Map<string, { add(): void }>()
  const add = (rule: string, outcome: string): void => {
    const key = `${outcome} ${rule}`
    let found = series.get(key)
    if (found === undefined) series.set(key, (found = decisions.with(route, rule, outcome)))
    found.add()
  }
  const count = ({ allowed, rule = DEFAULT, missingScopes, steps }: RuleDecision): void => {
    add(rule, allowed ? 'allowed' : missingScopes.length > 0 ? 'scope_missing' : 'denied')
    for (const step of steps) if (step.outcome === 'error' || step.outcome === 'limit') add(step.rule, step.outcome)
  }

  const isPassed = (method: string, request: ClientRequest): boolean =>
    passesOthers && (method !== 'POST' || !isUtf8Json(request.headers['content-type'] ?? ''))

  return {
    limitBytes: options.limitBytes,
    admit({ method, request }) {
      if (isPassed(method, request)) return false
      admitRequest(method, request)
      return true
    },
    authorize(known) {
      const { matched, caller } = known
      const { request } = matched.inbound
      if (isPassed(request.method, request)) return
      const view = readRequest(request, matched.body.kind === 'kept' ? matched.body.bytes : undefined, {
        annotationsOf: (tool) => memory.annotationsOf(tool),
        taskOf: (id) => memory.taskOf(caller, id),
      })
      matched.view = view
      if (rules !== undefined) {
        const hasSession = request.headers['mcp-session-id'] !== undefined
        matched.filterAnswer = createAnswerFilter({ route, caller, view, rules, memory, hasSession })
        // Answers that are read must not be encoded.
        removeHeaders(matched.headers, ACCEPT_ENCODING)
        matched.headers.push('accept-encoding', 'identity')
      }
      if (rules === undefined || view.subjects.length === 0) return
      const decision = rules.decideAll(view.subjects, { caller, route })
      matched.decision = decision
      count(decision)
      onDecision?.(known, view, decision)
      if (!decision.allowed) throw refusalOf(decision)
    },
  }
}

/** Nothing of it says which tool, or whether there is one of this name. */
function refusalOf({ missingScopes }: RuleDecision): Failure {
  if (missingScopes.length === 0) return new Failure('not_allowed')
  const scope = missingScopes.join(' ')
  return new Failure('insufficient_scope', {
    challenge: { error: 'insufficient_scope', scope },
    compared: { came: {}, wanted: { scope } },
  })
}
