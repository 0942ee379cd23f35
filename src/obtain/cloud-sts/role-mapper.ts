import {
  compileRequestMatcher,
  compileSelector,
  MatcherError,
  type MatcherResult,
  type Position,
  selects,
  variablesOf,
} from '../../cel/index.ts'
import { Failure, type Claims, type FailureCode, type McpView, NO_REQUEST } from '../../core/index.ts'
import type { CloudSts, RoleMapping } from '../../resources/index.ts'
import { leftOutAt, leftOutClaims, roleValues } from './claim-values.ts'
import { createRoleTemplate } from './role-template.ts'
import {
  attributeFieldsOf,
  type AttributeProblem,
  createAttributes,
  type SessionAttributes,
} from './session-attributes.ts'

/** The outcome of one mapping. It holds no claim values; `rule` and `missingKey` come from the config. */
export interface MappingStep {
  /** Position in `roleMappings`, from 1. */
  readonly mapping: number
  readonly kind: 'claim' | 'matcher' | 'request'
  readonly rule: string
  readonly priority: number | undefined
  /** As configured: `roleArn`, or `roleArnTemplate` with its placeholders. */
  readonly roleArn: string
  readonly outcome: 'matched' | 'not_matched' | 'error' | 'limit' | 'overage' | 'not_evaluated'
  /** A claim it needs that the issuer omitted (overage); with that outcome, it decided. */
  readonly leftOut?: string
  /** Where in the expression an error is, why, and the key that is missing where the expression spells it. */
  readonly position?: Position
  readonly reason?: string
  readonly missingKey?: string
}

/** The chosen role, and every mapping in the order of evaluation. */
export interface RoleChoice {
  readonly steps: readonly MappingStep[]
  readonly roleArn: string | undefined
  readonly by: 'mapping' | 'fallback' | undefined
  /** Why no role was chosen. */
  readonly refusal: Extract<FailureCode, 'no_role' | 'rule_limit' | 'matcher_error' | 'role_denied'> | undefined
  /** Why the matching mapping gives this caller no role or session; it holds no claim values. */
  readonly reason?: string
  /** Additional session attributes. */
  readonly attributes?: SessionAttributes
}

/** The request that a role is chosen for. */
export interface RoleRequest {
  readonly mcp: McpView
  readonly route: string
}

const NO_ROUTE: RoleRequest = { mcp: NO_REQUEST, route: '' }

export interface RoleMapper {
  /** A mapping reads the request: the choice differs from request to request of one caller. */
  readonly readsRequest: boolean
  /** Chooses a role. With `all`, later mappings are evaluated too, for the trace; the choice is the same. */
  choose(claims: Claims, options?: { readonly all?: boolean; readonly request?: RoleRequest | undefined }): RoleChoice
}

/** `onRead` is called with the claims that were read. */
type Evaluate = (
  claims: Claims,
  values: ReadonlySet<string>,
  request: RoleRequest,
  onRead?: (claim: string) => void,
) => MatcherResult

interface Rule {
  readonly step: Omit<MappingStep, 'outcome'>
  readonly evaluate: Evaluate
  readonly readsRequest: boolean
  readonly session: Session
}

type Chosen = Omit<RoleChoice, 'steps'>
/** The role and session of a mapping, or why there is none. */
type Session = (claims: Claims) => Chosen

export type RoleMapperSpec = Pick<
  CloudSts,
  | 'roleClaim'
  | 'onGroupsOverage'
  | 'roleMappings'
  | 'fallbackRoleArn'
  | 'sessionTags'
  | 'sourceIdentity'
  | 'sessionPolicy'
  | 'sessionPolicyTemplate'
  | 'policyArns'
  | 'externalId'
>

export interface RoleMapperOptions {
  /** Effect of a matcher error: no match (default), or no role at all. */
  readonly onMatcherError?: 'skip' | 'deny'
}

/**
 * Compiles the role choice of one config (decisions §3.5): mappings are sorted once, by priority, absent last, ties
 * in config order; the first match wins; a reached limit denies. Throws `config_error` for an invalid matcher.
 */
export function createRoleMapper(spec: RoleMapperSpec, options: RoleMapperOptions = {}): RoleMapper {
  const rules = (spec.roleMappings ?? [])
    .map((mapping, index) => compileRule(spec, mapping, index))
    .toSorted(
      (a, b) => (a.step.priority ?? Infinity) - (b.step.priority ?? Infinity) || a.step.mapping - b.step.mapping,
    )
  const denies = options.onMatcherError === 'deny'
  const fallback = fallbackOf(spec)
  const allowsOverage = spec.onGroupsOverage === 'fallback'

  /** Evaluates a rule, and finds an omitted claim that it needs. */
  const applied = (
    { evaluate, step }: Rule,
    claims: Claims,
    values: ReadonlySet<string>,
    names: ReadonlySet<string>,
    request: RoleRequest,
  ) => {
    if (names.size === 0) return { result: evaluate(claims, values, request), leftOut: undefined }
    let leftOut = step.kind === 'claim' ? leftOutAt(claims, spec.roleClaim, names) : undefined
    const result = evaluate(claims, values, request, (claim) => {
      if (names.has(claim)) leftOut ??= claim
    })
    return { result, leftOut }
  }

  return {
    readsRequest: rules.some(({ readsRequest }) => readsRequest),
    choose(claims, { all = false, request = NO_ROUTE } = {}) {
      const values = roleValues(claims, spec.roleClaim)
      const names = leftOutClaims(claims)
      const steps: MappingStep[] = []
      let decided: Chosen | undefined
      for (const rule of rules) {
        const { step, session } = rule
        if (decided !== undefined && !all) {
          steps.push({ ...step, outcome: 'not_evaluated' })
          continue
        }
        const { result, leftOut } = applied(rule, claims, values, names, request)
        const overageNote = leftOut === undefined ? {} : { leftOut }
        if (leftOut !== undefined && !allowsOverage) {
          steps.push({ ...step, outcome: 'overage', ...overageNote })
          decided ??= overage(leftOut)
          continue
        }
        steps.push({ ...step, ...traceOf(result), ...overageNote })
        decided ??= decisionOf(result, () => session(claims), denies)
      }
      decided ??= fallback(claims)
      return { steps, ...decided }
    },
  }
}

const MATCHED: MatcherResult = Object.freeze({ outcome: 'matched' })
const NOT_MATCHED: MatcherResult = Object.freeze({ outcome: 'not_matched' })

/** The requests that a mapping is for, as the config writes them. */
const shorthands = ({ tools = [], prompts = [], resources = [], methods = [] }: RoleMapping): string =>
  [...tools, ...prompts, ...resources, ...methods].join(', ')

function compileRule(spec: RoleMapperSpec, mapping: RoleMapping, index: number): Rule {
  const { roleArn, roleArnTemplate = '', priority, claim, matcher } = mapping
  const common = { mapping: index + 1, priority, roleArn: roleArn ?? roleArnTemplate }
  const session = sessionOf(spec, mapping)
  const selector = compileSelector(mapping)
  const isMeant = (request: RoleRequest): boolean => selector.isEmpty || selects(selector, request.mcp)
  if (matcher === undefined) {
    return {
      step: { ...common, kind: claim === undefined ? 'request' : 'claim', rule: claim ?? shorthands(mapping) },
      evaluate: (_claims, values, request) =>
        isMeant(request) && (claim === undefined || values.has(claim)) ? MATCHED : NOT_MATCHED,
      readsRequest: !selector.isEmpty,
      session,
    }
  }
  try {
    const compiled = compileRequestMatcher(matcher)
    return {
      step: { ...common, kind: 'matcher', rule: matcher },
      evaluate: (claims, _values, request, onRead) =>
        isMeant(request) ? compiled.evaluate(variablesOf({ ...request, claims }, onRead)) : NOT_MATCHED,
      readsRequest: !selector.isEmpty || compiled.reads.size > 0,
      session,
    }
  } catch (error) {
    if (!(error instanceof MatcherError)) throw error
    const place = `line ${error.line}, column ${error.column}`
    throw new Failure('config_error', { detail: `matcher of role mapping ${index + 1}, ${place}: ${error.message}` })
  }
}

/** The role of a mapping and its session attributes. */
function sessionOf(spec: RoleMapperSpec, mapping: RoleMapping): Session {
  const role = createRoleTemplate(mapping)
  const attributes = createAttributes(attributeFieldsOf(spec, mapping))
  return (claims) => {
    const mapped = role(claims)
    if ('reason' in mapped) return refused({ refusal: 'role_denied', reason: mapped.reason })
    return chosen(mapped.roleArn, 'mapping', attributes(claims))
  }
}

function fallbackOf(spec: RoleMapperSpec): Session {
  const { fallbackRoleArn } = spec
  if (fallbackRoleArn === undefined) return () => ({ roleArn: undefined, by: undefined, refusal: 'no_role' })
  const attributes = createAttributes(attributeFieldsOf(spec))
  return (claims) => chosen(fallbackRoleArn, 'fallback', attributes(claims))
}

function chosen(
  roleArn: string,
  by: 'mapping' | 'fallback',
  made: SessionAttributes | AttributeProblem | undefined,
): Chosen {
  if (made === undefined) return { roleArn, by, refusal: undefined }
  return 'reason' in made ? refused(made) : { roleArn, by, refusal: undefined, attributes: made }
}

const refused = ({ refusal, reason }: AttributeProblem): Chosen => ({
  roleArn: undefined,
  by: undefined,
  refusal,
  reason,
})

/** Whether the rule matches is unknown: neither its role nor a later one may be used. */
const overage = (claim: string): Chosen => ({
  roleArn: undefined,
  by: undefined,
  refusal: 'no_role',
  reason: `the issuer omitted ${JSON.stringify(claim)} from the token (overage, _claim_names), but a role mapping needs it`,
})

function decisionOf({ outcome }: MatcherResult, session: () => Chosen, denies: boolean): Chosen | undefined {
  // Rejections are final, so that a claim value can't select a later role.
  if (outcome === 'matched') return session()
  // Never continues with the next rule: an expensive claim must not select a later role.
  if (outcome === 'limit') return { roleArn: undefined, by: undefined, refusal: 'rule_limit' }
  if (outcome === 'error' && denies) return { roleArn: undefined, by: undefined, refusal: 'matcher_error' }
  return undefined
}

function traceOf(result: MatcherResult): Pick<MappingStep, 'outcome' | 'position' | 'reason' | 'missingKey'> {
  if (result.outcome !== 'error') return { outcome: result.outcome }
  const { outcome, position, reason, missingKey } = result
  return { outcome, position, reason, ...(missingKey === undefined ? {} : { missingKey }) }
}
