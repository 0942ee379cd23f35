import {
  compileRequestMatcher,
  compileSelector,
  matchesAny,
  MatcherError,
  type RequestMatcher,
  type RequestVariables,
  selects,
  type Selector,
  templatePart,
  variablesOf,
} from '../cel/index.ts'
import {
  type Caller,
  type Claims,
  Failure,
  type ListField,
  type McpView,
  NO_CLAIMS,
  type RuleDecision,
  type RuleStep,
  scopesOf,
} from '../core/index.ts'
import type { Authorization } from '../resources/index.ts'
import { UNKNOWN_TASK } from './read-request.ts'

/** What is decided about beside the request. */
export interface RuleContext {
  readonly caller: Pick<Extract<Caller, { kind: 'authenticated' }>, 'claims'> | { readonly kind: 'anonymous' }
  readonly route: string
}

/** The rules of a route, compiled. */
export interface Rules {
  /** Decides on one subject of a request. With `all`, rules after the deciding one are evaluated too, for the trace. */
  decide(subject: McpView, context: RuleContext, options?: { readonly all?: boolean }): RuleDecision
  /** Decides on all of them: every one must be allowed. No subject: allowed. */
  decideAll(subjects: readonly McpView[], context: RuleContext, options?: { readonly all?: boolean }): RuleDecision
  /** Whether some use of an item of a list could be allowed; `key` is its name or URI. */
  couldAllow(list: ListField, key: string, annotations: Claims, context: RuleContext): boolean
  /** Names of the rules in the order of evaluation. */
  readonly names: readonly string[]
}

interface Compiled {
  readonly name: string
  readonly effect: 'allow' | 'deny'
  readonly selector: Selector
  readonly matcher: RequestMatcher | undefined
  readonly requireScopes: readonly string[]
  /** Steps that say nothing of a request, made once. */
  readonly notMatched: RuleStep
  readonly notEvaluated: RuleStep
}

/** Methods that are decided by rules with `methods` only: the lists, which are filtered, and a stream that names no resource. */
const BY_METHOD_ONLY: ReadonlySet<string> = new Set([
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'subscriptions/listen',
])

const isByMethodOnly = ({ kind, method }: McpView): boolean => kind === 'other' && BY_METHOD_ONLY.has(method)

/** Requests whose rules are remembered, and characters of what tells them apart. */
const MAX_KNOWN = 512
const MAX_KNOWN_KEY = 256

/** What can be done with the items of a list. */
const USES: Readonly<Record<ListField, { readonly kind: McpView['kind']; readonly methods: readonly string[] }>> = {
  tools: { kind: 'tool', methods: ['tools/call'] },
  prompts: { kind: 'prompt', methods: ['prompts/get'] },
  resources: { kind: 'resource', methods: ['resources/read', 'resources/subscribe'] },
  resourceTemplates: { kind: 'resource', methods: ['resources/read', 'resources/subscribe'] },
}

/**
 * Compiles the rules of a route: sorted once by priority, absent last, ties in the order of the file; the first match
 * decides. Throws `config_error` for an expression that cannot be compiled.
 */
export function compileRules(authorization: Authorization): Rules {
  const rules = authorization.rules
    .map((rule, index) => ({ rule, index }))
    .toSorted((a, b) => (a.rule.priority ?? Infinity) - (b.rule.priority ?? Infinity) || a.index - b.index)
    .map(({ rule }): Compiled => ({
      name: rule.name,
      effect: rule.effect,
      selector: compileSelector(rule),
      matcher: rule.when === undefined ? undefined : compiled(rule.name, rule.when),
      requireScopes: rule.requireScopes,
      notMatched: Object.freeze({ rule: rule.name, effect: rule.effect, outcome: 'not_matched' }),
      notEvaluated: Object.freeze({ rule: rule.name, effect: rule.effect, outcome: 'not_evaluated' }),
    }))
  const notMatched = rules.map((rule) => rule.notMatched)
  const notEvaluated = rules.map((rule) => rule.notEvaluated)
  const isAllowedByDefault = authorization.default === 'allow'

  const known = new Map<string, readonly number[]>()
  /** The indexes of the rules whose shorthands name a subject. */
  const applicable = (subject: McpView): readonly number[] => {
    const { kind, method, name, uri } = subject
    const key = `${kind} ${method.length} ${method}${name}${uri}`
    const found = known.get(key)
    if (found !== undefined) return found
    const byMethodOnly = isByMethodOnly(subject)
    const indexes = rules.flatMap(({ selector }, index) =>
      (byMethodOnly ? matchesAny(selector.methods, method) : selects(selector, subject)) ? [index] : [],
    )
    if (key.length <= MAX_KNOWN_KEY) {
      // Names come from callers.
      if (known.size >= MAX_KNOWN) known.clear()
      known.set(key, indexes)
    }
    return indexes
  }

  const decide: Rules['decide'] = (subject, context, { all = false } = {}) => {
    const steps = [...notMatched]
    const byMethodOnly = isByMethodOnly(subject)
    let decided: Pick<RuleDecision, 'allowed' | 'rule' | 'missingScopes'> | undefined
    if (subject === UNKNOWN_TASK) decided = { allowed: false, rule: undefined, missingScopes: [] }
    let after = decided === undefined ? rules.length : 0
    let variables: RequestVariables | undefined
    for (const index of applicable(subject)) {
      const rule = rules[index]
      if (rule === undefined || (decided !== undefined && !all)) break
      const { name, effect, matcher, requireScopes } = rule
      const result = matcher?.evaluate((variables ??= variablesOf(about(subject, context)))) ?? MATCHED
      steps[index] =
        result.outcome === 'error' ? errorStep(name, effect, result) : { rule: name, effect, outcome: result.outcome }
      if (decided !== undefined) continue
      if (result.outcome === 'limit' || (result.outcome === 'error' && effect === 'deny'))
        decided = { allowed: false, rule: name, missingScopes: [] }
      else if (result.outcome === 'matched') {
        const missingScopes = effect === 'allow' ? scopesMissing(requireScopes, context) : []
        decided = { allowed: effect === 'allow' && missingScopes.length === 0, rule: name, missingScopes }
      }
      if (decided !== undefined) after = index + 1
    }
    if (!all) steps.splice(after, Infinity, ...notEvaluated.slice(after))
    return {
      steps,
      ...(decided ?? { allowed: isAllowedByDefault || byMethodOnly, rule: undefined, missingScopes: [] }),
    }
  }

  return {
    names: rules.map(({ name }) => name),
    decide,
    decideAll(subjects, context, options) {
      let decided: RuleDecision = ALLOWED
      const missing = new Set<string>()
      for (const subject of subjects) {
        const decision = decide(subject, context, options)
        // One that no scope would help decides over others that need scopes.
        if (!decision.allowed && decision.missingScopes.length === 0) return decision
        for (const scope of decision.missingScopes) missing.add(scope)
        if (decided.allowed) decided = decision
      }
      return missing.size === 0 ? decided : { ...decided, missingScopes: [...missing] }
    },
    couldAllow(list, key, annotations, context) {
      const { kind, methods } = USES[list]
      const isResource = kind === 'resource'
      const named = { kind, name: isResource ? '' : key, uri: isResource ? key : '', args: NO_CLAIMS, annotations }
      return methods.some((method) => couldAllowUse({ ...named, method }, list === 'resourceTemplates', context))
    },
  }

  function couldAllowUse(subject: McpView, isTemplate: boolean, context: RuleContext): boolean {
    let variables: RequestVariables | undefined
    for (const { effect, selector, matcher } of rules) {
      const part = isTemplate ? templatePart(selector, subject) : selects(selector, subject) ? 'all' : 'none'
      if (part === 'none') continue
      // What only a call has could make the expression true, and another call false.
      const isOpen = matcher !== undefined && (matcher.reads.has('args') || (isTemplate && matcher.reads.has('uri')))
      if (isOpen || (part === 'some' && effect === 'deny')) {
        if (effect === 'allow') return true
        continue
      }
      const { outcome } = matcher?.evaluate((variables ??= variablesOf(about(subject, context)))) ?? MATCHED
      if (outcome === 'limit') return false
      if (effect === 'deny' && outcome !== 'not_matched') return false
      if (effect === 'allow' && outcome === 'matched') return true
    }
    return isAllowedByDefault
  }
}

const MATCHED = Object.freeze({ outcome: 'matched' as const })
const ALLOWED: RuleDecision = Object.freeze({ allowed: true, rule: undefined, missingScopes: [], steps: [] })

const about = (mcp: McpView, { caller, route }: RuleContext) => ({
  mcp,
  claims: 'claims' in caller ? caller.claims : NO_CLAIMS,
  route,
})

function scopesMissing(required: readonly string[], { caller }: RuleContext): readonly string[] {
  if (required.length === 0) return []
  const granted = 'claims' in caller ? scopesOf(caller) : new Set<string>()
  return required.filter((scope) => !granted.has(scope))
}

function errorStep(
  rule: string,
  effect: 'allow' | 'deny',
  { position, reason, missingKey }: Extract<ReturnType<RequestMatcher['evaluate']>, { outcome: 'error' }>,
): RuleStep {
  return { rule, effect, outcome: 'error', position, reason, ...(missingKey === undefined ? {} : { missingKey }) }
}

function compiled(name: string, when: string): RequestMatcher {
  try {
    return compileRequestMatcher(when)
  } catch (error) {
    if (!(error instanceof MatcherError)) throw error
    const place = `line ${error.line}, column ${error.column}`
    throw new Failure('config_error', { detail: `"when" of rule "${name}", ${place}: ${error.message}` })
  }
}
