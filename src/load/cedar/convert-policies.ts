import { Document } from 'yaml'
import type { Authorization, AuthorizationRule } from '../../resources/index.ts'
import { WRITTEN_YAML } from '../yaml/written-yaml.ts'
import {
  CedarError,
  MAX_POLICIES,
  parsePolicies,
  type Policy,
  START,
  TARGETS,
  type Term,
  TOO_MANY,
} from './parse-policies.ts'

/** The rules of a set of policies, and what is worth a comment. */
export interface ConvertedPolicies {
  readonly authorization: Authorization
  readonly notes: readonly string[]
}

/**
 * Converts Cedar policies as ToolHive evaluates them: a request is denied if a policy in whose scope it is cannot be
 * evaluated, else if a `forbid` matches, else allowed if a `permit` matches. Throws `CedarError` for everything outside
 * the subset; its `policy` is the index of the text.
 */
export function convertCedar(...texts: readonly string[]): ConvertedPolicies {
  const policies = texts.flatMap((text, index) => parsePolicies(text, index))
  if (policies.length > MAX_POLICIES) throw new CedarError(texts.length - 1, START, TOO_MANY)
  const notes: string[] = []
  const errors = new Map<string, AuthorizationRule>()
  const forbidden: AuthorizationRule[] = []
  const permitted: AuthorizationRule[] = []
  for (const [index, { effect, scope, terms }] of policies.entries()) {
    const name = `policy-${index + 1}`
    if (Object.keys(scope).length === 0) {
      notes.push(`${name} matches no request: lists are filtered by what the caller may use`)
      continue
    }
    const when = terms.length === 0 ? {} : { when: terms.map(celOf).join(' && ') }
    if (effect === 'forbid') forbidden.push({ name, ...scope, ...when, requireScopes: [], effect: 'deny' })
    else permitted.push({ name, ...scope, ...when, requireScopes: [], effect: 'allow' })
    if (terms.length === 0) continue
    const isUnusable = unusableOf(terms)
    const earlier = errors.get(isUnusable)
    const merged = earlier === undefined ? scope : union(earlier, scope)
    const errorName = earlier?.name ?? `${name}-unusable-claim`
    errors.set(isUnusable, { name: errorName, ...merged, when: isUnusable, requireScopes: [], effect: 'deny' })
  }
  const everything = { tools: ['*'], prompts: ['*'], resources: ['*'] }
  return {
    notes,
    authorization: {
      default: 'deny',
      rules: [
        { name: 'no-subject', ...everything, when: 'claims.sub == ""', requireScopes: [], effect: 'deny' },
        ...errors.values(),
        ...forbidden,
        ...permitted,
        { name: 'notifications', methods: ['notifications/*', 'tasks/list'], requireScopes: [], effect: 'allow' },
      ],
    },
  }
}

/** The rules without settings that have their default. */
function shortened({ rules, ...authorization }: Authorization): object {
  const short = rules.map(({ requireScopes, ...rule }) =>
    requireScopes.length === 0 ? rule : { ...rule, requireScopes },
  )
  return { ...authorization, rules: short }
}

/** The rules in one line of JSON. Throws `CedarError`. */
export const cedarToJson = (texts: readonly string[]): string =>
  JSON.stringify(shortened(convertCedar(...texts).authorization))

/** The rules as YAML, for a route. Throws `CedarError`. */
export function cedarToYaml(texts: readonly string[]): string {
  const { authorization, notes } = convertCedar(...texts)
  const document = new Document({ authorization: shortened(authorization) }, WRITTEN_YAML)
  return `${notes.map((note) => `# ${note}\n`).join('')}${document.toString({ lineWidth: WRITTEN_YAML.lineWidth })}`
}

function union(one: AuthorizationRule, other: Policy['scope']): Policy['scope'] {
  const scope: Policy['scope'] = {}
  for (const target of TARGETS) {
    const all = [...new Set([...(one[target] ?? []), ...(other[target] ?? [])])]
    if (all.length > 0) scope[target] = all.includes('*') ? ['*'] : all
  }
  return scope
}

/** The condition in CEL. It is exact where the claim is usable; `unusableOf` denies other requests before it. */
function celOf({ claim, is, values }: Term): string {
  const [first = ''] = values
  if (is === 'equal') return `${claimOf(claim)} == ${JSON.stringify(first)}`
  if (is === 'contains') return `${JSON.stringify(first)} in ${claimOf(claim)}`
  return `${claimOf(claim)} in [${values.map((value) => JSON.stringify(value)).join(', ')}]`
}

/**
 * Whether an evaluation from left to right reaches a claim that Cedar cannot use. A missing claim is an error of the
 * expression, which denies.
 */
function unusableOf(terms: readonly Term[]): string {
  const parts = terms.map(({ claim, is }, index) => {
    const unusable = is === 'contains' ? `type(${claimOf(claim)}) != list` : `${claimOf(claim)} == null`
    return [...terms.slice(0, index).map(celOf), unusable].join(' && ')
  })
  return [...new Set(parts)].join(' || ')
}

const RESERVED = new Set(
  'as break const continue else false for function if import in let loop null package namespace return true var void while'.split(
    ' ',
  ),
)

const claimOf = (claim: string): string =>
  /^[A-Za-z_]\w*$/.test(claim) && !RESERVED.has(claim) ? `claims.${claim}` : `claims[${JSON.stringify(claim)}]`
