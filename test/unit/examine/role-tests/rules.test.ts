import type { ExplainReport } from '../../../../src/examine/explain/explain-report.ts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { cases, CONFIG, extauth, folder, type Folder, ROLE } from '../../../support/examine/role-tests/files.ts'

const RULES = `{
  default: deny,
  rules: [
    { name: readers, tools: ["get_*"], when: '"readers" in claims.groups', effect: allow },
    { name: sandbox, priority: 1, tools: ["delete_*"], when: 'mcp.args.repo.startsWith("sandbox/")', requireScopes: ["repo:write"], effect: allow },
    { name: hinted, tools: ["x"], when: 'mcp.annotations.destructiveHint', effect: deny }
  ]
}`
const RULED = CONFIG.replaceAll(/externalAuthConfigRef: \{ name: (aws|github) \} \}/g, (text) =>
  text.replace(/ \}$/, `, authorization: ${RULES.replaceAll('\n', ' ')} }`),
)
const reader = { sub: 'ada', groups: ['readers'] }

let files: Folder
beforeAll(async () => {
  files = await folder({ 'proxy.yaml': RULED, 'args.json': '{"repo":"sandbox/a"}' })
})
afterAll(() => files.remove())

const config = () => ['--config', `${files.directory}/proxy.yaml`]
async function test(list: readonly object[], ...more: readonly string[]) {
  return extauth(['test', await files.write('cases.json', cases(...list)), ...config(), ...more])
}
const explain = (claims: object, ...more: readonly string[]) =>
  extauth(['explain', ...config(), '--route', 'github', '--claims', JSON.stringify(claims), ...more])

/** Deeper than the proxy reads. */
const DEEP = { a: Array.from({ length: 70 }).reduce<unknown>((inner) => [inner], 1) }

describe('extauth test with requests', () => {
  it('compares whether a request is allowed, by which rule, and the role behind it', async () => {
    const { code, out, err } = await test([
      { route: 'github', claims: reader, mcp: { name: 'get_a' }, expect: { allowed: true, rule: 'readers' } },
      { route: 'github', claims: reader, mcp: { name: 'set_a' }, expect: { allowed: false, rule: 'default' } },
      {
        route: 'github',
        claims: { sub: 'ada', scope: 'repo:write' },
        mcp: { name: 'delete_a', args: { repo: 'sandbox/a' } },
        expect: { allowed: true, rule: 'sandbox' },
      },
      {
        route: 'github',
        claims: reader,
        mcp: { name: 'delete_a', args: { repo: 'sandbox/a' } },
        expect: { allowed: false, rule: 'sandbox' },
      },
      { route: 'github', claims: reader, mcp: { method: 'initialize' }, expect: { allowed: true } },
      { route: 'aws', claims: reader, mcp: { name: 'get_a' }, expect: { allowed: true, role: ROLE('reader') } },
      { route: 'aws', claims: reader, mcp: { name: 'set_a' }, expect: { allowed: false, role: 'none' } },
    ])
    expect(err).toBe('')
    expect(out).toContain('7 passed, 0 failed')
    expect(out).toContain('route github rule "hinted" → deny (evaluated for 1 case, never chosen)')
    expect(code).toBe(0)
  })

  it('names what differs, and the way of the decision', async () => {
    const { code, out } = await test([
      { route: 'github', claims: reader, mcp: { name: 'get_a' }, expect: { allowed: false, rule: 'sandbox' } },
    ])
    expect(code).toBe(1)
    expect(out).toMatch(/expected allowed {5}false/)
    expect(out).toContain('matched       "readers" → allow')
    expect(out).toContain('allowed       yes, by the rule "readers"')
  })

  it('fails with --require-reached while a rule is reached by no case', async () => {
    const list = [{ route: 'github', claims: reader, mcp: { name: 'get_a' }, expect: { allowed: true } }]
    expect((await test(list, '--require-reached')).code).toBe(1)
  })

  it.each([
    ['a request of a config', { config: 'aws', claims: reader, mcp: { name: 'a' }, expect: { allowed: true } }],
    ['allowed without a request', { route: 'github', claims: reader, expect: { allowed: true } }],
    [
      'a request that the proxy refuses',
      { route: 'github', claims: reader, mcp: { name: 'a', args: DEEP }, expect: { allowed: true } },
    ],
    ['a role on a route without', { route: 'github', claims: reader, mcp: { name: 'a' }, expect: { role: 'none' } }],
  ])('refuses %s', async (_name, each) => {
    expect((await test([each])).code).toBe(2)
  })
})

describe('extauth explain with a request', () => {
  it('names each rule and what it comes to', async () => {
    const { code, out } = await explain(reader, '--tool', 'delete_a', '--args', `${files.directory}/args.json`)
    expect(code).toBe(3)
    expect(out).toContain('request       tools/call "delete_a"')
    expect(out).toContain('allowed       no, by the rule "sandbox", without the scopes repo:write')
    expect((await explain(reader, '--tool', 'get_a')).code).toBe(0)
    const failed = await explain(reader, '--tool', 'delete_a')
    expect(failed.out).toContain('error         "sandbox" → allow — line 1, column')
  })

  it('names the event of the audit trail', async () => {
    const audited = async (audit: string, ...more: readonly string[]) => {
      const file = await files.write('audited.yaml', RULED.replace('  routes:\n', `  audit: ${audit}\n  routes:\n`))
      const argv = ['--route', 'github', '--claims', JSON.stringify(reader), '-v', ...more]
      return (await extauth(['explain', '--config', file, ...argv])).out
    }
    expect(await audited('{ file: ./a.jsonl, format: ocsf }', '--tool', 'get_a')).toMatch(
      /^audit {9}mcp_tool_call to \/.*a\.jsonl \(ocsf\)$/m,
    )
    expect(await audited('{ file: stdout, exclude: [mcp_ping] }', '--method', 'ping')).toContain(
      'audit         none: mcp_ping is not among the recorded events',
    )
    expect(await audited('{ file: stdout }')).not.toContain('audit ')
    expect((await explain(reader, '--tool', 'get_a', '-v')).out).not.toContain('audit ')
  })

  it('takes other methods, and refuses what the proxy would', async () => {
    const { out } = await explain(reader, '--method', 'resources/read', '--uri', 'file:///a')
    expect(out).toContain('allowed       no, by default')
    expect((await explain(reader, '--method', 'resources/read')).code).toBe(3)
    expect((await explain(reader, '--args', '{}')).code).toBe(2)
    expect((await explain(reader, '--tool', 'a', '--args', '{"a":1,"a":2}')).code).toBe(2)
  })

  it('compares recorded requests with another configuration', async () => {
    const decisions = [
      {
        atMs: 1,
        requestId: 'a',
        route: 'github',
        mcp: { method: 'tools/call', kind: 'tool', name: 'get_a', uri: '', args: {}, annotations: {} },
        rules: { allowed: true, rule: 'readers', missingScopes: [], steps: [] },
        claims: { iss: 'i', ...reader },
      },
    ]
    const recorded = await files.write('decisions.json', JSON.stringify({ decisions }))
    const same = await extauth(['explain', '--against', `${files.directory}/proxy.yaml`, '--decisions', recorded])
    expect([same.code, same.out]).toEqual([0, '0 of 1 caller would change\n'])
    const other = await files.write('other.yaml', RULED.replaceAll('get_*', 'read_*'))
    const changed = await extauth(['explain', '--against', other, '--decisions', recorded])
    expect(changed.code).toBe(1)
    expect(changed.out).toContain('before  allowed by "readers"')
    expect(changed.out).toContain('after   not allowed by default')
    const made = await extauth(['test', '--from-decisions', recorded])
    const written = await files.write('made.yaml', made.out)
    expect((await extauth(['test', written, ...config()])).code).toBe(0)
  })
})

it.each([
  ['restrict-tools.yaml', 4],
  ['contractors.yaml', 9],
  ['aws-roles-per-tool.yaml', 7],
])('the example %s passes its own %i cases, which reach each of its rules and mappings', async (file, cases) => {
  const { code, out } = await extauth(['test', `config/examples/${file}`, '--require-reached'])
  expect(out).toContain(`${cases} passed, 0 failed`)
  expect(code).toBe(0)
})

it('explains a request by the credential that the proxy selects for it', async () => {
  const explained = async (tool: string) => {
    const claims = JSON.stringify({ sub: 'lee', email: 'lee@example.com', groups: ['leads'] })
    const config = ['--config', 'config/examples/aws-roles-per-tool.yaml', '--route', 'orders', '--claims', claims]
    const { out } = await extauth(['explain', ...config, '--tool', tool, '--output', 'json'])
    const { config: chosen, why, decision } = JSON.parse(out) as ExplainReport
    return { config: chosen.name, why, role: decision?.choice.roleArn }
  }
  expect(await explained('archive_order')).toEqual({
    config: 'default/archive',
    why: 'route "orders" (path /orders) names it in credentials[0].externalAuthConfigRef',
    role: 'arn:aws:iam::210987654321:role/archive',
  })
  expect(await explained('delete_order')).toMatchObject({
    config: 'default/orders',
    why: 'route "orders" (path /orders) names it in externalAuthConfigRef',
    role: 'arn:aws:iam::123456789012:role/orders-delete',
  })
})
