import { expect, test, vi } from 'vitest'
import { compileRules } from '../../../src/authorize/index.ts'
import type { Claims, ListField, McpView } from '../../../src/core/index.ts'
import { authorization } from '../../../src/resources/authorization.ts'
import { seeded } from '../../support/seeded.ts'

vi.setConfig({ testTimeout: 600_000 })

// An independent reading of the contract: conditions are JavaScript functions beside their CEL, globs are regular expressions.
type Request = McpView
interface Caller {
  readonly groups?: readonly string[]
  readonly scope?: string
}
type Verdict = boolean | 'error'
interface Condition {
  readonly cel: string
  readonly readsArgs: boolean
  readonly of: (request: Request, caller: Caller) => Verdict
}

const CONDITIONS: readonly Condition[] = [
  { cel: 'true', readsArgs: false, of: () => true },
  { cel: 'false', readsArgs: false, of: () => false },
  {
    cel: '"a" in claims.groups',
    readsArgs: false,
    of: (_request, { groups }) => (groups === undefined ? 'error' : groups.includes('a')),
  },
  {
    cel: 'has(claims.groups) && "b" in claims.groups',
    readsArgs: false,
    of: (_request, { groups = [] }) => groups.includes('b'),
  },
  {
    cel: 'mcp.args.repo == "x"',
    readsArgs: true,
    of: ({ args }) => ('repo' in args ? args['repo'] === 'x' : 'error'),
  },
  { cel: 'has(mcp.args.repo)', readsArgs: true, of: ({ args }) => 'repo' in args },
  { cel: 'mcp.name.startsWith("get")', readsArgs: false, of: ({ name }) => name.startsWith('get') },
  { cel: 'mcp.kind == "tool"', readsArgs: false, of: ({ kind }) => kind === 'tool' },
  { cel: 'route == "r"', readsArgs: false, of: () => true },
]
const NAMES = ['get_a', 'get_b', 'delete_a', 'set', 'g', '']
const URIS = ['file:///pub/a', 'file:///etc/b', 'x']
const GLOBS = ['get_*', '*', '*_a', 'delete_a', 'g*_*a', 'file:///pub/*', 'nothing', '*e*']
const METHODS = [
  'tools/call',
  'prompts/get',
  'resources/read',
  'resources/subscribe',
  'custom/x',
  'tools/list',
] as const
const KINDS: Readonly<Record<string, McpView['kind']>> = {
  'tools/call': 'tool',
  'prompts/get': 'prompt',
  'resources/read': 'resource',
  'resources/subscribe': 'resource',
}

interface Rule {
  readonly name: string
  readonly priority?: number
  readonly tools?: readonly string[]
  readonly prompts?: readonly string[]
  readonly resources?: readonly string[]
  readonly methods?: readonly string[]
  readonly condition: Condition | undefined
  readonly requireScopes: readonly string[]
  readonly effect: 'allow' | 'deny'
}

const matches = (globs: readonly string[] = [], text: string): boolean =>
  globs.some((glob) =>
    new RegExp(
      `^${glob
        .split('*')
        .map((part) => part.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&'))
        .join('[^]*')}$`,
    ).test(text),
  )

const isFor = (rule: Rule, { kind, name, uri, method }: Request): boolean => {
  const lists = [rule.tools, rule.prompts, rule.resources, rule.methods]
  if (method === 'tools/list') return matches(rule.methods, method)
  if (lists.every((list) => list === undefined)) return true
  return (
    (kind === 'tool' && matches(rule.tools, name)) ||
    (kind === 'prompt' && matches(rule.prompts, name)) ||
    (kind === 'resource' && matches(rule.resources, uri)) ||
    matches(rule.methods, method)
  )
}

const ordered = (rules: readonly Rule[]): readonly Rule[] => {
  const rest = [...rules]
  const result: Rule[] = []
  while (rest.length > 0) {
    let best = 0
    for (let at = 1; at < rest.length; at++)
      if ((rest[at]?.priority ?? Infinity) < (rest[best]?.priority ?? Infinity)) best = at
    result.push(...rest.splice(best, 1))
  }
  return result
}

interface Read {
  readonly allowed: boolean
  readonly rule: string | undefined
  readonly missing: readonly string[]
}

function read(rules: readonly Rule[], fallback: 'allow' | 'deny', request: Request, caller: Caller): Read {
  for (const rule of ordered(rules)) {
    if (!isFor(rule, request)) continue
    const verdict = rule.condition?.of(request, caller) ?? true
    if (verdict === 'error' && rule.effect === 'deny') return { allowed: false, rule: rule.name, missing: [] }
    if (verdict !== true) continue
    const granted = (caller.scope ?? '').split(' ')
    const missing = rule.effect === 'allow' ? rule.requireScopes.filter((scope) => !granted.includes(scope)) : []
    return { allowed: rule.effect === 'allow' && missing.length === 0, rule: rule.name, missing }
  }
  return { allowed: request.method === 'tools/list' || fallback === 'allow', rule: undefined, missing: [] }
}

test('random rules, callers and requests are decided as an independent reading of the contract decides them', () => {
  const draw = seeded(43)
  const random = (): number => draw(2 ** 32) / 2 ** 32
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T
  const maybe = <T>(chance: number, make: () => T): T | undefined => (random() < chance ? make() : undefined)
  const globs = () => maybe(0.4, () => Array.from({ length: 1 + Math.floor(random() * 2) }, () => pick(GLOBS)))
  let decided = 0
  let listed = 0
  for (let round = 0; round < 1200; round++) {
    const rules = Array.from({ length: Math.floor(random() * 6) }, (_, index): Rule => {
      const effect = pick(['allow', 'deny'] as const)
      const priority = maybe(0.5, () => Math.floor(random() * 3))
      const lists = {
        tools: globs(),
        prompts: globs(),
        resources: globs(),
        methods: maybe(0.15, () => [pick([...METHODS, '*'])]),
      }
      const set = Object.fromEntries(Object.entries(lists).filter(([, value]) => value !== undefined))
      return {
        name: `r${index}`,
        ...(priority === undefined ? {} : { priority }),
        ...set,
        condition: maybe(0.6, () => pick(CONDITIONS)),
        requireScopes:
          effect === 'allow' ? (maybe(0.3, () => ['s1', 's2'].slice(0, 1 + Math.floor(random() * 2))) ?? []) : [],
        effect,
      }
    })
    const fallback = pick(['allow', 'deny'] as const)
    const compiled = compileRules(
      authorization().parse({
        default: fallback,
        rules: rules.map(({ condition, ...rule }) => ({
          ...rule,
          ...(condition === undefined ? {} : { when: condition.cel }),
        })),
      }),
    )
    for (let each = 0; each < 90; each++) {
      const method = pick(METHODS)
      const kind = KINDS[method] ?? 'other'
      const args = (maybe(0.5, () => ({ repo: pick(['x', 'y']) })) ?? {}) as Claims
      const isResource = kind === 'resource'
      const isNamed = kind === 'tool' || kind === 'prompt'
      const request: Request = {
        method,
        kind,
        name: isNamed ? pick(NAMES) : '',
        uri: isResource ? pick(URIS) : '',
        args,
        annotations: {},
      }
      const groups = maybe(0.7, () => [pick(['a', 'b', 'c'])])
      const scope = maybe(0.6, () => pick(['s1', 's2', 's1 s2']))
      const caller = { ...(groups === undefined ? {} : { groups }), ...(scope === undefined ? {} : { scope }) }
      const context = { caller: { claims: caller as unknown as Claims }, route: 'r' }
      const decision = compiled.decide(request, context)
      const expected = read(rules, fallback, request, caller)
      const found = { allowed: decision.allowed, rule: decision.rule, missing: decision.missingScopes }
      const at = JSON.stringify({ rules, fallback, request, caller })
      expect([at, found]).toEqual([at, expected])
      decided += 1
      // A list holds exactly what some call could be allowed for: calls are tried, with scopes that a client could ask for.
      if (each % 3 !== 0 || method === 'tools/list' || kind === 'other') continue
      const list: ListField = kind === 'tool' ? 'tools' : kind === 'prompt' ? 'prompts' : 'resources'
      const methods = isResource ? ['resources/read', 'resources/subscribe'] : [method]
      const all = { ...caller, scope: 's1 s2' }
      const readsArgs = (rule: Rule) => rule.condition?.readsArgs === true
      const could = methods.some((one) =>
        couldBe(
          ordered(rules).filter((rule) => isFor(rule, { ...request, method: one })),
          readsArgs,
          (rule) => rule.condition?.of({ ...request, method: one }, all) ?? true,
          fallback,
        ),
      )
      expect([at, compiled.couldAllow(list, isResource ? request.uri : request.name, {}, context)]).toEqual([at, could])
      listed += 1
    }
  }
  expect(decided).toBeGreaterThan(100_000)
  expect(listed).toBeGreaterThan(20_000)
})

/** A rule that reads arguments counts as could: both as matching and as not matching. */
function couldBe(
  rules: readonly Rule[],
  readsArgs: (rule: Rule) => boolean,
  verdictOf: (rule: Rule) => Verdict,
  fallback: 'allow' | 'deny',
): boolean {
  const [rule, ...rest] = rules
  if (rule === undefined) return fallback === 'allow'
  const next = (): boolean => couldBe(rest, readsArgs, verdictOf, fallback)
  if (readsArgs(rule)) return rule.effect === 'allow' || next()
  const verdict = verdictOf(rule)
  if (rule.effect === 'deny') return verdict === false && next()
  return verdict === true || next()
}
