import { describe, expect, it } from 'vitest'
import { compileRules } from '../../../../src/authorize/index.ts'
import type { Claims, McpView } from '../../../../src/core/index.ts'
import { convertCedar } from '../../../../src/load/cedar/convert-policies.ts'
import { CedarError } from '../../../../src/load/cedar/parse-policies.ts'
import { authorization as schema } from '../../../../src/resources/authorization.ts'

const rulesOf = (text: string) =>
  convertCedar(text).authorization.rules.map(({ requireScopes, ...rule }) => {
    expect(requireScopes).toEqual([])
    return rule
  })

describe('policies become rules', () => {
  it('denies unusable claims first, then what is forbidden, then allows', () => {
    const policies = `
      // Everyone may search.
      permit(principal, action == Action::"call_tool", resource == Tool::"search");
      permit(principal, action == Action::"call_tool", resource) when { principal.claim_groups.contains("staff") };
      forbid(principal, action, resource == Tool::"drop") when {
        principal.claim_groups.contains("guests") && ["a", "b"].contains(principal["claim_cognito:tier"]) };
      permit(principal, action == Action::"list_tools", resource);`
    expect(rulesOf(policies)).toEqual([
      { name: 'no-subject', tools: ['*'], prompts: ['*'], resources: ['*'], when: 'claims.sub == ""', effect: 'deny' },
      { name: 'policy-2-unusable-claim', tools: ['*'], when: 'type(claims.groups) != list', effect: 'deny' },
      {
        name: 'policy-3-unusable-claim',
        tools: ['drop'],
        when: 'type(claims.groups) != list || "guests" in claims.groups && claims["cognito:tier"] == null',
        effect: 'deny',
      },
      {
        name: 'policy-3',
        tools: ['drop'],
        when: '"guests" in claims.groups && claims["cognito:tier"] in ["a", "b"]',
        effect: 'deny',
      },
      { name: 'policy-1', tools: ['search'], effect: 'allow' },
      { name: 'policy-2', tools: ['*'], when: '"staff" in claims.groups', effect: 'allow' },
      { name: 'notifications', methods: ['notifications/*', 'tasks/list'], effect: 'allow' },
    ])
    expect(convertCedar(policies).notes).toEqual([expect.stringMatching(/^policy-4 matches no request/)])
  })

  it.each([
    ['permit(principal, action, resource);', { tools: ['*'], prompts: ['*'], resources: ['*'] }],
    ['permit(principal, action, resource == Prompt::"a b");', { prompts: ['a b'] }],
    ['permit(principal, action == Action::"get_prompt", resource);', { prompts: ['*'] }],
    ['permit(principal, action == Action::"read_resource", resource);', { resources: ['*'] }],
    ['permit(principal,action,resource)when{principal.claim_in=="a\\"\\\\"};', { when: 'claims["in"] == "a\\"\\\\"' }],
  ])('%s', (policy, rule) => {
    expect(rulesOf(policy).find(({ name }) => name === 'policy-1')).toMatchObject(rule)
    expect(schema().safeParse(convertCedar(policy).authorization).success).toBe(true)
  })
})

const when = (condition: string) => `permit(principal, action, resource)\nwhen { ${condition} };`

describe('what cannot be expressed exactly is refused, with its location', () => {
  it.each([
    ['', 1, 1, /there is no policy/],
    ['allow(principal, action, resource);', 1, 1, /found "allow"; expected "permit" or "forbid"/],
    ['@id("a") permit(principal, action, resource);', 1, 1, /annotations/],
    ['permit(principal == Client::"a", action, resource);', 1, 18, /condition on a claim/],
    ['permit(principal in THVGroup::"a", action, resource);', 1, 18, /condition on a claim/],
    ['permit(principal == ?principal, action, resource);', 1, 18, /condition on a claim/],
    ['permit(principal, action in [Action::"call_tool"], resource);', 1, 26, /"in" is not converted/],
    ['permit(principal, action == Action::"delete", resource);', 1, 37, /unknown action "delete"/],
    ['permit(principal, action == Other::"call_tool", resource);', 1, 29, /expected "Action"/],
    ['permit(principal, action, resource in Backend::"a");', 1, 36, /"in" is not converted/],
    ['permit(principal, action, resource is Tool);', 1, 36, /"is" is not converted/],
    ['permit(principal, action, resource == ?resource);', 1, 39, /templates/],
    ['permit(principal, action, resource == FeatureType::"tool");', 1, 39, /expected Tool, Prompt, Resource/],
    ['permit(principal, action, resource == Resource::"file____a");', 1, 49, /several URIs/],
    ['permit(principal, action, resource == Tool::"get_*");', 1, 45, /pattern/],
    ['permit(principal, action, resource == Tool::"");', 1, 45, /empty/],
    ['permit(principal, action, resource) unless { principal.claim_a == "b" };', 1, 37, /"unless"/],
    ['permit(principal, action, resource)', 1, 36, /expected ";"/],
    ['permit(principal, action, resource); permit', 1, 44, /the end of the policies/],
    [when('principal.claim_a like "b*"'), 2, 26, /"like"/],
    [when('principal has claim_a'), 2, 18, /"has"/],
    [when('principal.claim_a == "b" || principal.claim_a == "c"'), 2, 33, /"\|\|"/],
    [when('principal.claim_a != "b"'), 2, 26, /"!="/],
    [when('!(principal.claim_a == "b")'), 2, 8, /negations/],
    [when('(principal.claim_a == "b")'), 2, 8, /parentheses/],
    [when('principal.claim_a == 1'), 2, 29, /expected a string/],
    [when('principal.claim_a == principal.claim_b'), 2, 29, /expected a string/],
    [when('principal.claim_a.b == "c"'), 2, 26, /expected "contains"/],
    [when('principal.claim_a.containsAny(["b"])'), 2, 26, /expected "contains"/],
    [when('principal.name == "b"'), 2, 18, /starts with claim_/],
    [when('principal.claim_ == "b"'), 2, 18, /starts with claim_/],
    [when('resource.readOnlyHint == true'), 2, 8, /attributes of the resource/],
    [when('context.arg_a == "b"'), 2, 8, /"context"/],
    [when('if true then true else false'), 2, 8, /"if"/],
    [when('[].contains(principal.claim_a)'), 2, 9, /expected a string/],
    [when('principal.claim_a == "b\\n"'), 2, 29, /escape/],
    [when('principal.claim_a == "b'), 2, 29, /does not end/],
    [`${when('principal.claim_a == "b"').slice(0, -1)} when { principal.claim_a == "c" };`, 2, 35, /expected ";"/],
    ['permit(principal, action, resource);\n'.repeat(201), 201, 1, /more than 200 policies/],
  ])('%s', (text, line, column, message) => {
    let error: unknown
    try {
      convertCedar(text)
    } catch (thrown) {
      error = thrown
    }
    expect(error).toBeInstanceOf(CedarError)
    expect((error as CedarError).message).toMatch(message)
    expect(error).toMatchObject({ line, column })
  })

  it('names the policy of a list, and bounds their number together', () => {
    const policy = 'permit(principal, action, resource);\n'
    const failure = (...texts: string[]) => {
      try {
        return convertCedar(...texts)
      } catch (error) {
        return error
      }
    }
    expect(failure(policy, 'deny;')).toMatchObject({ policy: 1, line: 1, column: 1 })
    expect(failure(policy.repeat(150), policy.repeat(51))).toMatchObject({
      policy: 1,
      message: 'there are more than 200 policies',
    })
    expect(failure(policy.repeat(150), policy.repeat(50))).toMatchObject({ authorization: { default: 'deny' } })
  })
})

/** Numbers below a bound, the same in each run. */
function randomOf(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

interface Part {
  readonly text: string
  /** As Cedar evaluates it: undefined is an error. */
  readonly holds: (claims: Claims) => boolean | undefined
}

const CLAIMS = ['a', 'groups', 'in', 'x:y'] as const
const WORDS = ['v', 'w', 'it"s'] as const
const VALUES: readonly unknown[] = ['v', 'w', ['v'], ['w', 1, 'v'], [], { v: 1 }, null, 7, true, [['v']], undefined]

describe('the rules decide as ToolHive does', () => {
  it('on random policies, callers and requests', () => {
    const random = randomOf(43)
    const pick = <T>(from: readonly T[]): T => from[random(from.length)] as T
    const part = (): Part => {
      const claim = pick(CLAIMS)
      const value: string = pick(WORDS)
      const name = /^\w+$/.test(claim) && random(2) === 0 ? `principal.claim_${claim}` : `principal["claim_${claim}"]`
      const own = (claims: Claims): unknown => claims[claim] ?? undefined
      switch (random(3)) {
        case 0:
          return {
            text: `${name} == ${JSON.stringify(value)}`,
            holds: (claims) => (own(claims) === undefined ? undefined : own(claims) === value),
          }
        case 1:
          return {
            text: `${name}.contains(${JSON.stringify(value)})`,
            holds: (claims) => {
              const list = own(claims)
              return Array.isArray(list) ? list.includes(value) : undefined
            },
          }
        default:
          return {
            text: `["v", ${JSON.stringify(value)}].contains(${name})`,
            holds: (claims) => {
              const one = own(claims)
              return one === undefined ? undefined : one === 'v' || one === value
            },
          }
      }
    }
    const policy = () => {
      const effect = random(3) === 0 ? 'forbid' : 'permit'
      const action = pick([undefined, 'call_tool', 'get_prompt', 'read_resource', 'list_tools'])
      const resource = pick([undefined, undefined, 'Tool', 'Prompt'])
      const name = pick(['p', 'q'])
      const parts = Array.from({ length: random(3) }, part)
      return {
        effect,
        text: `${effect}(principal, action${action === undefined ? '' : ` == Action::"${action}"`}, resource${resource === undefined ? '' : ` == ${resource}::"${name}"`})${parts.length === 0 ? '' : ` when { ${parts.map(({ text }) => text).join(' && ')} }`};`,
        applies: (request: readonly [string, string, string], claims: Claims) => {
          if (action !== undefined && action !== request[0]) return false
          if (resource !== undefined && (resource !== request[1] || name !== request[2])) return false
          for (const { holds } of parts) {
            const is = holds(claims)
            if (is !== true) return is
          }
          return true
        },
      }
    }
    const views = {
      Tool: ['call_tool', 'tools/call', 'tool'],
      Prompt: ['get_prompt', 'prompts/get', 'prompt'],
      Resource: ['read_resource', 'resources/read', 'resource'],
    } as const
    const count = { allowed: 0, denied: 0 }
    for (let set = 0; set < 1500; set++) {
      const policies = Array.from({ length: 1 + random(4) }, policy)
      const { authorization } = convertCedar(policies.map(({ text }) => text).join('\n'))
      if (set % 50 === 0) expect(schema().safeParse(authorization).error).toBeUndefined()
      const rules = compileRules(authorization)
      for (let call = 0; call < 20; call++) {
        const type = pick(['Tool', 'Prompt', 'Resource'] as const)
        const [action, method, kind] = views[type]
        const name = pick(['p', 'q', 'r'])
        const chosen = [...CLAIMS.map((claim) => [claim, pick(VALUES)]), ['sub', pick(['u', 'u', 'u', 'u', ''])]]
        const claims = Object.fromEntries(chosen.filter(([, value]) => value !== undefined)) as Claims
        const outcomes = policies.map(({ effect, applies }) => ({ effect, is: applies([action, type, name], claims) }))
        const expected =
          claims['sub'] !== '' &&
          outcomes.every(({ is }) => is !== undefined) &&
          !outcomes.some(({ effect, is }) => effect === 'forbid' && is === true) &&
          outcomes.some(({ effect, is }) => effect === 'permit' && is === true)
        const isResource = kind === 'resource'
        const subject: McpView = {
          method,
          kind,
          name: isResource ? '' : name,
          uri: isResource ? `file:///${name}` : '',
          args: {},
          annotations: {},
        }
        const { allowed, rule } = rules.decide(subject, { caller: { claims }, route: 'r' })
        count[allowed ? 'allowed' : 'denied'] += 1
        expect(
          { allowed, policies: policies.map(({ text }) => text), claims, subject, rule },
          'decision',
        ).toMatchObject({ allowed: expected })
      }
    }
    expect(count.allowed + count.denied).toBe(30_000)
    expect(count.allowed).toBeGreaterThan(2000)
  })
})
