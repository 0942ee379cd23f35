import { describe, expect, it } from 'vitest'
import { compileRules, type Rules } from '../../../src/authorize/index.ts'
import type { Claims, McpView } from '../../../src/core/index.ts'
import { authorization } from '../../../src/resources/authorization.ts'

const rulesOf = (spec: object): Rules => compileRules(authorization().parse(spec))
const claimsOf = (claims: Record<string, unknown>) => ({ caller: { claims: claims as Claims }, route: 'r' })
const call = (name: string, args: object = {}): McpView => ({
  method: 'tools/call',
  kind: 'tool',
  name,
  uri: '',
  args: args as Claims,
  annotations: {},
})

const EXAMPLE = {
  default: 'deny',
  rules: [
    { name: 'readers', tools: ['get_*', 'list_*'], when: '"readers" in claims.groups', effect: 'allow' },
    {
      name: 'sandbox-deletes',
      priority: 1,
      tools: ['delete_*'],
      when: 'claims.amr.exists(m, m == "mfa") && mcp.args.repo.startsWith("sandbox/")',
      requireScopes: ['repo:write'],
      effect: 'allow',
    },
  ],
}

describe('rules', () => {
  const rules = rulesOf(EXAMPLE)

  it('are ordered by priority, those without last', () => {
    expect(rules.names).toEqual(['sandbox-deletes', 'readers'])
  })

  it('allow what a rule that allows matches, and deny by default', () => {
    const reader = claimsOf({ groups: ['readers'] })
    expect(rules.decide(call('get_file'), reader)).toMatchObject({ allowed: true, rule: 'readers' })
    expect(rules.decide(call('delete_repo'), reader)).toMatchObject({ allowed: false, rule: undefined })
    expect(rules.decide(call('get_file'), claimsOf({}))).toMatchObject({ allowed: false })
  })

  it('ask for the scopes that are still needed', () => {
    const caller = claimsOf({ amr: ['mfa'], scope: 'repo:read' })
    const decision = rules.decide(call('delete_repo', { repo: 'sandbox/a' }), caller)
    expect(decision).toMatchObject({ allowed: false, rule: 'sandbox-deletes', missingScopes: ['repo:write'] })
    const scoped = claimsOf({ amr: ['mfa'], scope: 'repo:write' })
    expect(rules.decide(call('delete_repo', { repo: 'sandbox/a' }), scoped)).toMatchObject({ allowed: true })
    expect(rules.decide(call('delete_repo', { repo: 'prod/a' }), scoped)).toMatchObject({ allowed: false })
  })

  it('that fail allow nothing, and deny what they were to deny', () => {
    const failing = (effect: string, fallback: string) =>
      rulesOf({ default: fallback, rules: [{ name: 'a', when: 'claims.missing == 1', effect }] })
    expect(failing('allow', 'deny').decide(call('x'), claimsOf({}))).toMatchObject({ allowed: false, rule: undefined })
    expect(failing('deny', 'allow').decide(call('x'), claimsOf({}))).toMatchObject({ allowed: false, rule: 'a' })
  })

  it('deny where an expression reaches its limit, whatever would follow', () => {
    const costly = rulesOf({
      default: 'allow',
      rules: [{ name: 'a', when: 'claims.l.all(x, claims.l.all(y, x == x))', effect: 'allow' }],
    })
    const caller = claimsOf({ l: Array.from({ length: 200 }, (_, index) => index) })
    expect(costly.decide(call('x'), caller)).toMatchObject({ allowed: false, rule: 'a', steps: [{ outcome: 'limit' }] })
  })

  it('know actor and route', () => {
    const own = rulesOf({
      default: 'deny',
      rules: [{ name: 'a', when: 'actor.sub == "bot" && route == "r"', effect: 'allow' }],
    })
    expect(own.decide(call('x'), claimsOf({ act: { sub: 'bot' } }))).toMatchObject({ allowed: true })
    expect(own.decide(call('x'), claimsOf({}))).toMatchObject({ allowed: false })
  })

  it('decide on lists only where they name the method', () => {
    const list: McpView = { ...call(''), method: 'tools/list', kind: 'other' }
    expect(rules.decide(list, claimsOf({}))).toMatchObject({ allowed: true })
    const closed = rulesOf({ default: 'allow', rules: [{ name: 'no-lists', methods: ['*/list'], effect: 'deny' }] })
    expect(closed.decide(list, claimsOf({}))).toMatchObject({ allowed: false, rule: 'no-lists' })
  })
})

describe('an item of a list stays', () => {
  const could = (spec: object, key: string, claims = {}, list: 'tools' | 'resourceTemplates' = 'tools', hints = {}) =>
    rulesOf(spec).couldAllow(list, key, hints, claimsOf(claims))

  it('where some call could be allowed', () => {
    expect(could(EXAMPLE, 'get_file', { groups: ['readers'] })).toBe(true)
    expect(could(EXAMPLE, 'get_file', {})).toBe(false)
    // It reads arguments: some call could.
    expect(could(EXAMPLE, 'delete_repo', {})).toBe(true)
    expect(could(EXAMPLE, 'other', { groups: ['readers'] })).toBe(false)
  })

  it('and not where a rule denies every call', () => {
    const spec = { default: 'allow', rules: [{ name: 'd', when: 'mcp.annotations.destructiveHint', effect: 'deny' }] }
    expect(could(spec, 'a', {}, 'tools', { destructiveHint: true })).toBe(false)
    expect(could(spec, 'a', {}, 'tools', { destructiveHint: false })).toBe(true)
    // Without the hint the rule fails, and denies.
    expect(could(spec, 'a', {})).toBe(false)
  })

  it('and not where a rule reaches its limit', () => {
    const claims = { l: Array.from({ length: 200 }, (_, index) => index) }
    const when = 'claims.l.all(x, claims.l.all(y, x == x))'
    for (const effect of ['allow', 'deny'])
      expect(could({ default: 'allow', rules: [{ name: 'a', when, effect }] }, 'x', claims)).toBe(false)
  })

  it('for a template that some pattern reaches', () => {
    const spec = { default: 'deny', rules: [{ name: 'p', resources: ['file:///pub/*'], effect: 'allow' }] }
    const of = (template: string) => could(spec, template, {}, 'resourceTemplates')
    expect(of('file:///pub/{name}')).toBe(true)
    expect(of('file:///{path}')).toBe(true)
    expect(of('https://{host}/')).toBe(false)
    const denied = { default: 'allow', rules: [{ name: 'p', resources: ['file:///pub/*'], effect: 'deny' }] }
    expect(could(denied, 'file:///pub/{name}', {}, 'resourceTemplates')).toBe(false)
    expect(could(denied, 'file:///{path}', {}, 'resourceTemplates')).toBe(true)
  })
})

describe('the configuration', () => {
  const problems = (spec: object) =>
    authorization()
      .safeParse(spec)
      .error?.issues.map(({ message }) => message) ?? []

  it('refuses a rule that widens by hints of the backend', () => {
    const rule = { name: 'a', when: 'mcp.annotations.readOnlyHint', effect: 'allow' }
    expect(problems({ default: 'deny', rules: [rule] })[0]).toContain('hints of the backend')
    expect(problems({ default: 'allow', rules: [rule] })).toEqual([])
    expect(problems({ default: 'deny', rules: [{ ...rule, effect: 'deny' }] })).toEqual([])
    expect(problems({ default: 'deny', rules: [{ ...rule, when: 'mcp["annotations"].readOnlyHint' }] })).toHaveLength(1)
    expect(problems({ default: 'deny', rules: [{ ...rule, when: 'mcp == mcp' }] })).toHaveLength(1)
  })

  it('refuses names twice, unknown variables and fields, and scopes on rules that deny', () => {
    const twice = [
      { name: 'a', effect: 'allow' },
      { name: 'a', effect: 'deny' },
    ]
    expect(problems({ default: 'deny', rules: twice })[0]).toContain('same name')
    expect(problems({ default: 'deny', rules: [{ name: 'a', when: 'tool == "x"', effect: 'allow' }] })[0]).toContain(
      'unknown variable "tool"',
    )
    expect(
      problems({ default: 'deny', rules: [{ name: 'a', when: 'mcp.tool == "x"', effect: 'allow' }] })[0],
    ).toContain('"mcp" has no field "tool"')
    expect(problems({ default: 'deny', rules: [{ name: 'a', requireScopes: ['x'], effect: 'deny' }] })).toHaveLength(1)
    expect(problems({ rules: [] })).toHaveLength(1)
  })
})
