import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openLab, post, INITIALIZE, type TestLab } from '../../../support/e2e/lab.ts'
import { CONFIG, extauth, folder, type Folder, ROLE } from '../../../support/examine/role-tests/files.ts'

const CLAIMS = { iss: 'https://issuer.example', aud: 'mcp', sub: 'ada', groups: ['readers'], exp: 4_102_444_800 }
const record = (more: object) => ({
  atMs: 1,
  requestId: 'r1',
  route: 'aws',
  decision: {
    config: 'default/aws',
    choice: { steps: [], roleArn: ROLE('reader'), by: 'mapping' },
    sessionNameClaim: 'sub',
    session: { name: 'ada', changes: [] },
  },
  claims: CLAIMS,
  ...more,
})

let files: Folder
beforeAll(async () => {
  const other = CONFIG.replace('claim: readers', 'claim: writers')
  files = await folder({
    'proxy.yaml': CONFIG,
    'other.txt': other,
    'few.txt': CONFIG.replace('name: aws, path', 'name: aws2, path'),
  })
})
afterAll(() => files.remove())

const file = (name: string): string => `${files.directory}/${name}`
const write = (decisions: readonly object[]) => files.write('decisions.json', JSON.stringify({ decisions }))

describe('extauth test --from-decisions', () => {
  it('makes cases of what a proxy recorded, which pass by the same rules', async () => {
    const lab: TestLab = await openLab({ showClaims: true })
    try {
      for (const caller of [{ sub: 'alice', groups: ['admins'] }, { sub: 'on', groups: ['dev'] }, { sub: 'x|y' }]) {
        const authorization = `Bearer ${await lab.token(caller)}`
        for (const _ of [1, 2]) await post(`${lab.url}/cloud-sts`, INITIALIZE, { authorization })
      }
      const recorded = await (await fetch(`${lab.adminUrl}/decisions`)).text()
      const made = await extauth(['test', '--from-decisions', '-'], recorded)
      expect(made).toMatchObject({ code: 0, err: '' })
      expect(made.out.match(/^ +- name: .*$/gm)).toHaveLength(3)
      const cases = await files.write('recorded.yaml', made.out)
      expect(await extauth(['validate', cases])).toMatchObject({ code: 0, out: '' })
      const run = await extauth(['test', cases, '--config', 'config/lab', '--verbose'])
      expect(run.out).toContain('✓ recorded 2: lab-developer on cloud-sts')
      expect(run.out).toMatch(/14 passed, 0 failed/)
    } finally {
      await lab.close()
    }
  })

  it('expects rejections, of opaque tokens too, and no session name bound to the token', async () => {
    await write([
      record({
        decision: { config: 'default/aws', choice: { steps: [] }, refusal: 'no_role' },
        claims: { sub: 'eve' },
      }),
      record({ decision: { config: 'default/aws', choice: { steps: [] }, refusal: 'opaque_token_unsupported' } }),
      record({
        claims: { mail: 'a|b', groups: ['readers'] },
        decision: {
          ...record({}).decision,
          session: { name: 'a-b-0123456789abcdef', changes: ['characters_replaced'] },
        },
      }),
      record({ claims: undefined }),
    ])
    const { out, err } = await extauth(['test', '--from-decisions', file('decisions.json')])
    expect(err).toBe('1 decisions skipped: recorded without claims (start the proxy with --show-claims)\n')
    expect(out).toMatch(/reason: "no_role"/)
    expect(out).toMatch(/format: "opaque"\n +expect:\n +role: "none"\n +reason: "opaque_token_unsupported"/)
    expect(out).not.toContain('0123456789abcdef')
  })

  it.each([
    ['{', /is not valid JSON/],
    ['{"decisions":[{}]}', /is not a response of GET \/decisions/],
    ['{"decisions":[]}', /has no decision/],
    [JSON.stringify({ decisions: [record({ claims: undefined })] }), /no claims; start the proxy with --show-claims/],
  ])('refuses %s', async (text, message) => {
    const { code, out, err } = await extauth(['test', '--from-decisions', '-'], text)
    expect([code, out]).toEqual([2, ''])
    expect(err).toMatch(message)
  })
})

describe('extauth explain --against', () => {
  const against = (other: string, ...more: string[]) =>
    extauth(['explain', '--against', file(other), '--decisions', file('decisions.json'), ...more])

  it('lists whose role would change, against what was recorded or what --config decides, and exits with 1', async () => {
    await write([
      record({}),
      record({ requestId: 'r2', atMs: 2, claims: { ...CLAIMS, exp: 4_102_444_900, jti: 'other' } }),
      record({
        requestId: 'r3',
        claims: { ...CLAIMS, sub: 'bob', groups: ['writers'] },
        decision: { choice: {}, config: 'default/aws', refusal: 'no_role' },
      }),
      record({
        requestId: 'r4',
        claims: { ...CLAIMS, sub: 'eve', dept: 'x' },
        decision: { ...record({}).decision, choice: { roleArn: ROLE('dept') }, session: { name: 'eve', changes: [] } },
      }),
    ])
    for (const more of [[], ['--config', file('proxy.yaml')]]) {
      const { code, out } = await against('other.txt', ...more)
      expect(code).toBe(1)
      expect(out).toBe(`aws  bob of https://issuer.example
    before  none (no_role)
    after   ${ROLE('reader')} as bob
aws  ada of https://issuer.example
    before  ${ROLE('reader')} as ada
    after   none (no_role)
2 of 3 callers would change
`)
    }
    expect(JSON.parse((await against('other.txt', '--output', 'json')).out)).toMatchObject({
      callers: 3,
      changes: [{ subject: 'bob' }, { subject: 'ada', requestId: 'r2', after: { role: 'none', reason: 'no_role' } }],
    })
  })

  it('compares tags, source identity, policies and external id too, and says what of them differs', async () => {
    const spec = (tags: string, more = '') =>
      CONFIG.replace(
        'region: eu-central-1',
        `region: eu-central-1\n    source: { type: ambient }\n    sessionTags: [${tags}]${more}`,
      )
    const team = '{ key: Team, value: claims.sub, transitive: true }'
    await files.write('tagged.txt', spec(team))
    await files.write(
      'narrower.txt',
      spec('{ key: Team, value: claims.sub }', '\n    externalId: of-us\n    sourceIdentity: claims.sub'),
    )
    const attributes = { tags: [{ key: 'Team', value: 'ada', transitive: true }], policyArns: [], writtenPolicy: 'x' }
    const { decision } = record({})
    await write([record({ decision: { ...decision, choice: { ...decision.choice, attributes } } })])
    expect(await against('tagged.txt')).toMatchObject({ code: 0 })
    for (const more of [[], ['--config', file('tagged.txt')]]) {
      const { code, out } = await against('narrower.txt', ...more)
      expect(code).toBe(1)
      expect(out).toBe(`aws  ada of https://issuer.example
    before  ${ROLE('reader')} as ada
            tag           Team = ada (transitive)
    after   ${ROLE('reader')} as ada
            tag           Team = ada
            source id     ada
            external id   of-us
1 of 1 caller would change
`)
    }
    await files.write(
      'service.txt',
      CONFIG.replace(/region: eu-central-1[^]*?(?=\n---|$)/, 'region: eu-central-1\n    source: { type: ambient }'),
    )
    expect((await against('service.txt')).out).toContain('after   none (signed with the identity of the process)')
  })

  it('exits with 0 if no result changes', async () => {
    await write([record({})])
    expect(await against('proxy.yaml')).toMatchObject({ code: 0, out: '0 of 1 caller would change\n' })
  })

  it('takes a route that is gone for the loss of its roles', async () => {
    await write([record({})])
    expect((await against('few.txt')).out).toContain('after   none (no such route)')
  })

  it.each([
    [['--against', 'x'], /--against needs --decisions/],
    [['--decisions', 'x'], /--decisions needs --against/],
    [['--against', 'x', '--decisions', 'y', '--route', 'aws'], /--route is for a single caller/],
  ])('refuses %j', async (argv, message) => {
    const { code, err } = await extauth(['explain', ...argv])
    expect(code).toBe(2)
    expect(err).toMatch(message)
  })
})
