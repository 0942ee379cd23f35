import { describe, expect, test } from 'vitest'
import { compileRules, readMessage } from '../../../../src/authorize/index.ts'
import { renderProblem, resolveProxy } from '../../../../src/load/index.ts'
import { load, workload } from '../../../support/load/documents/build.ts'

const filter = (spec: object) => workload('MCPToolConfig', 'few', spec)
const remote = (kind: string) =>
  workload(kind, 'w', {
    remoteUrl: 'https://backend.example.com/mcp',
    auth: { mode: 'anonymous' },
    toolConfigRef: { name: 'few' },
  })

function resolve(...documents: readonly object[]) {
  const loaded = load(...documents)
  const { config, problems = [] } = resolveProxy(loaded, {})
  return {
    authorization: config?.routes[0]?.authorization,
    problems: [...new Set(problems.map(renderProblem))].join('\n'),
    warnings: loaded.warnings.map(renderProblem).join('\n'),
  }
}

describe.each(['MCPRemoteProxy', 'MCPServerEntry'])('the MCPToolConfig of an %s', (kind) => {
  test('becomes rules that deny by default', () => {
    const { authorization, problems } = resolve(filter({ toolsFilter: ['a', 'b c'] }), remote(kind))
    expect(problems).toBe('')
    expect(authorization).toMatchObject({ default: 'deny', rules: [{ name: 'toolsFilter', tools: ['a', 'b c'] }, {}] })
  })

  test.each([[{}], [{ toolsFilter: [] }], [{ toolsOverride: {} }]])('restricts nothing with %j', (spec) => {
    expect(resolve(filter(spec), remote(kind))).toEqual({ authorization: undefined, problems: '', warnings: '' })
  })

  test('is a problem where it is missing, invalid, or renames tools', () => {
    expect(resolve(remote(kind)).problems).toContain('there is no MCPToolConfig "few" in namespace "default"')
    expect(resolve(filter({ toolsFilter: ['get_*'] }), remote(kind)).problems).toContain(
      'spec.toolsFilter[0]  expected the name of one tool on one line, without `*`',
    )
    expect(resolve(filter({ toolsFilters: ['a'] }), remote(kind)).problems).toContain('unknown field "toolsFilters"')
    const renaming = filter({ toolsFilter: ['a'], toolsOverride: { b: { name: 'a' } } })
    const { problems, warnings } = resolve(renaming, remote(kind))
    expect(problems).toContain('spec.toolConfigRef.name  "toolsOverride" of MCPToolConfig "few" renames tools')
    expect(warnings).toContain('a proxy that refers to it is refused')
  })
})

/** A sequence of pseudo-random numbers below `end` (mulberry32). */
function random(seed: number): (end: number) => number {
  let state = seed
  return (end) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % end
  }
}

const NAMES = ['a', 'b', 'A', 'ab', 'a b', 'é', '', 'a*', 'tools/call', 'constructor']
/** What a message asks for, and whether a filter of tools is about it. */
const OTHERS: readonly (readonly [method: string, params: object, allowed: boolean])[] = [
  ['initialize', {}, true],
  ['ping', {}, true],
  ['tools/list', {}, true],
  ['prompts/list', {}, true],
  ['prompts/get', { name: 'b' }, true],
  ['resources/read', { uri: 'file:///b' }, true],
  ['completion/complete', { ref: { type: 'ref/prompt', name: 'b' } }, true],
  ['notifications/roots/list_changed', {}, true],
  ['subscriptions/listen', {}, true],
  ['subscriptions/listen', { notifications: { resourceSubscriptions: ['file:///b'] } }, true],
  ['tasks/list', {}, true],
  ['tasks/get', { taskId: 'unknown' }, false],
  ['tools/run', { name: 'a' }, false],
  ['Tools/Call', { name: 'a' }, false],
]

test('random filters and messages: a tool is callable and listed exactly if the filter names it', () => {
  const next = random(43)
  const context = { caller: { kind: 'anonymous' as const }, route: 'w' }
  for (let round = 0; round < 500; round++) {
    const toolsFilter = [...new Set(Array.from({ length: 1 + next(4) }, () => NAMES[next(6)] ?? 'a'))]
    const { authorization } = resolve(filter({ toolsFilter }), remote('MCPRemoteProxy'))
    if (authorization === undefined) throw new Error('a filter makes rules')
    const rules = compileRules(authorization)
    const isAllowed = (method: string, params: object): boolean => {
      const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }))
      const view = readMessage(body, { annotationsOf: () => ({}), taskOf: () => undefined })
      return rules.decideAll(view.subjects, context).allowed
    }
    for (const name of NAMES) {
      const expected = toolsFilter.includes(name)
      expect([name, isAllowed('tools/call', { name, arguments: {} })]).toEqual([name, expected])
      expect([name, rules.couldAllow('tools', name, {}, context)]).toEqual([name, expected])
      expect(rules.couldAllow('prompts', name, {}, context)).toBe(true)
      expect(rules.couldAllow('resourceTemplates', `x:{${name}}`, {}, context)).toBe(true)
    }
    for (const [method, params, expected] of OTHERS)
      expect([method, isAllowed(method, params)]).toEqual([method, expected])
  }
})
