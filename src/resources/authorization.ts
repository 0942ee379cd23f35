import { z } from 'zod'
import { compileRequestMatcher, MatcherError, type RequestMatcher, type RequestSelector } from '../cel/index.ts'
import { int32, isRecord, localReference, type Rule, scopes, segmentName, withRules } from '../fields/index.ts'

const MOST_RULES = 500
const MOST_GLOBS = 1000

const globs = (what: string) =>
  z
    .array(
      z
        .string()
        .min(1)
        .max(1024)
        .regex(/^[^\p{Cc}]+$/u, { error: 'expected a name or a pattern with `*` on one line' }),
    )
    .max(MOST_GLOBS)
    .optional()
    .describe(`${what}; \`*\` matches any characters.`)

/** Shorthand conditions on requests; without any, every request matches. */
export const requestSelector = () => ({
  tools: globs('Names of tools'),
  prompts: globs('Names of prompts'),
  resources: globs('URIs of resources'),
  methods: globs('JSON-RPC methods'),
})

/** A CEL expression over `mcp`, `claims`, `actor` and `route`. */
export const requestExpression = () =>
  z.string().min(1).max(10_000).describe('CEL over `mcp`, `claims`, `actor` and `route`; must be true as well.')

const authorizationRule = () =>
  withRules(
    z.strictObject({
      name: segmentName().describe('Unique per route; in decisions, metrics and the audit trail.'),
      priority: int32(-1_000_000, 1_000_000)
        .optional()
        .describe('Lowest first; rules without one come last. Ties keep the order of the file.'),
      ...requestSelector(),
      when: requestExpression().optional(),
      requireScopes: scopes()
        .default([])
        .describe(
          'Scopes that the token must have, too: without them 403 with a challenge that lists those still needed.',
        ),
      effect: z.enum(['allow', 'deny']).describe('What becomes of a request that the rule matches.'),
    }),
    [
      {
        message: '"requireScopes" belongs to rules that allow, expected none with effect "deny"',
        at: 'requireScopes',
        holds: ({ effect, requireScopes }) =>
          effect !== 'deny' || !Array.isArray(requireScopes) || requireScopes.length === 0,
        json: {
          not: {
            required: ['effect', 'requireScopes'],
            properties: { effect: { const: 'deny' }, requireScopes: { minItems: 1 } },
          },
        },
      },
    ],
  )

/** `routes[].authorization`: which MCP requests a caller may make. */
export const authorization = () =>
  withRules(
    z.strictObject({
      default: z.enum(['deny', 'allow']).describe('What becomes of a request that no rule matches.'),
      rules: z
        .array(authorizationRule())
        .max(MOST_RULES)
        .superRefine(usableRules, { when: () => true })
        .default([])
        .describe('In the order of priority; the first that matches decides.'),
    }),
    [ANNOTATIONS_NARROW],
  )

export type Authorization = z.output<ReturnType<typeof authorization>>
export type AuthorizationRule = Authorization['rules'][number]

/** `routes[].credentials`: another credential for some requests. */
export const credentials = () =>
  z
    .array(
      z.strictObject({
        ...requestSelector(),
        when: requestExpression().optional(),
        externalAuthConfigRef: localReference().describe('How the backend wants these requests to be authenticated.'),
      }),
    )
    .max(100)
    .superRefine(usableConditions, { when: () => true })

function usableConditions(entries: unknown, context: z.core.$RefinementCtx): void {
  if (!Array.isArray(entries) || entries.length > 100) return
  for (const [index, entry] of entries.entries()) {
    const message = isRecord(entry) ? problemOf(entry.when) : undefined
    if (message !== undefined) context.addIssue({ code: 'custom', message, path: [index, 'when'] })
  }
}

/** Names must be unique, and every expression must compile. */
function usableRules(rules: unknown, context: z.core.$RefinementCtx): void {
  if (!Array.isArray(rules) || rules.length > MOST_RULES) return
  const first = new Map<string, number>()
  for (const [index, rule] of rules.entries()) {
    if (!isRecord(rule)) continue
    const { name } = rule
    if (typeof name === 'string') {
      const earlier = first.get(name)
      if (earlier === undefined) first.set(name, index)
      else {
        const message = `rules[${earlier}] has the same name, expected each name once`
        context.addIssue({ code: 'custom', message, path: [index, 'name'] })
      }
    }
    const message = problemOf(rule.when)
    if (message !== undefined) context.addIssue({ code: 'custom', message, path: [index, 'when'] })
  }
}

/** Why an expression over requests can't be evaluated, with its location in the text; undefined for a valid one. */
export function problemOf(when: unknown): string | undefined {
  const compiled = compile(when)
  return compiled instanceof MatcherError
    ? `line ${compiled.line}, column ${compiled.column} of the expression: ${compiled.message}`
    : undefined
}

function compile(when: unknown): RequestMatcher | MatcherError | undefined {
  if (typeof when !== 'string' || when === '') return undefined
  try {
    return compileRequestMatcher(when)
  } catch (error) {
    if (error instanceof MatcherError) return error
    throw error
  }
}

const readsAnnotations = (when: unknown): boolean => {
  const compiled = compile(when)
  return compiled !== undefined && !(compiled instanceof MatcherError) && compiled.reads.has('annotations')
}

/** Hints come from the backend: they may narrow access, never widen it. */
const ANNOTATIONS_NARROW: Rule = {
  message:
    'a rule that allows must not read "mcp.annotations" unless "default" is "allow": they are hints of the backend',
  at: 'rules',
  explain: ({ rules }) => {
    const rule = Array.isArray(rules) ? rules.find(widens) : undefined
    const name = isRecord(rule) && typeof rule.name === 'string' ? `"${rule.name}"` : 'a rule'
    return `${name} allows by "mcp.annotations", which are hints of the backend; expected effect "deny", or "default: allow"`
  },
  holds: ({ default: fallback, rules }) => fallback === 'allow' || !Array.isArray(rules) || !rules.some(widens),
}

const widens = (rule: unknown): boolean => isRecord(rule) && rule.effect === 'allow' && readsAnnotations(rule.when)

/** Warns about rules that never decide, because an earlier unconditional rule matches the same requests. */
export function remarksOnRules({
  rules,
}: Authorization): readonly { readonly index: number; readonly message: string }[] {
  const ordered = rules
    .map((rule, index) => ({ rule, index }))
    .toSorted((a, b) => (a.rule.priority ?? Infinity) - (b.rule.priority ?? Infinity) || a.index - b.index)
  return ordered.flatMap(({ rule, index }, at) => {
    if (rule.when?.trim() === 'false') return [{ index, message: 'the rule can never match: its condition is false' }]
    const earlier = ordered.slice(0, at).find(({ rule: other }) => other.when === undefined && covers(other, rule))
    return earlier === undefined
      ? []
      : [{ index, message: `the rule can never decide: "${earlier.rule.name}" matches all its requests before it` }]
  })
}

const SELECTORS = ['tools', 'prompts', 'resources', 'methods'] as const

const isForAll = (rule: RequestSelector): boolean => SELECTORS.every((name) => (rule[name] ?? []).length === 0)

function covers(one: RequestSelector, other: RequestSelector): boolean {
  if (isForAll(one)) return true
  if (isForAll(other)) return false
  return SELECTORS.every((name) =>
    (other[name] ?? []).every((glob) => (one[name] ?? []).some((wide) => wide === glob || wide === '*')),
  )
}
