import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  cases,
  CONFIG,
  extauth,
  folder,
  type Folder,
  ROLE,
  tokenOf,
} from '../../../support/examine/role-tests/files.ts'

let files: Folder
beforeAll(async () => {
  files = await folder({
    'proxy.yaml': CONFIG,
    token: tokenOf({ iss: 'https://issuer.example', sub: 'ada', dept: 'x' }),
  })
})
afterAll(() => files.remove())

async function test(...list: readonly object[]) {
  const file = await files.write('cases.json', cases(...list))
  return extauth(['test', file, '--config', `${files.directory}/proxy.yaml`])
}
const reader = { route: 'aws', claims: { sub: 'ada', groups: ['readers'] } }

describe('extauth test', () => {
  it.each([
    ['a role', { ...reader, expect: { role: ROLE('reader') } }],
    ['a role and a session name', { ...reader, expect: { role: ROLE('reader'), sessionName: 'ada' } }],
    [
      'a changed session name',
      { route: 'aws', claims: { iss: 'i', sub: 'a|b', dept: 'x' }, expect: { sessionName: 'a-b-2552fbd9ec89665e' } },
    ],
    ['no role', { route: 'aws', claims: { sub: 'ada' }, expect: { role: 'none' } }],
    ['why there is none', { route: 'aws', claims: { sub: 'ada' }, expect: { role: 'none', reason: 'no_role' } }],
    [
      'no role for want of a session name',
      { route: 'aws', claims: { groups: ['readers'] }, expect: { role: 'none', reason: 'session_name_missing' } },
    ],
    [
      'the rule of the route about matchers that fail',
      { route: 'strict', claims: { sub: 'ada', groups: ['readers'] }, expect: { reason: 'matcher_error' } },
    ],
    ['no role for an opaque token', { ...reader, format: 'opaque', expect: { reason: 'opaque_token_unsupported' } }],
    [
      'a config without a route',
      { config: 'aws', claims: { sub: 'ada', groups: ['readers'] }, expect: { role: ROLE('reader') } },
    ],
    [
      'a token in a file beside the cases',
      { route: 'aws', token: 'token', expect: { role: ROLE('dept'), sessionName: 'ada' } },
    ],
    [
      'a claim that is null as one that is there',
      { route: 'aws', claims: { sub: 'ada', team: null }, expect: { role: ROLE('no-team') } },
    ],
  ])('passes a case that expects %s', async (_, each) => {
    const { code, out, err } = await test(each)
    expect(err).toBe('')
    expect(out).toContain('1 passed, 0 failed (1 case)')
    expect(code).toBe(0)
  })

  it.each([
    ['role', { ...reader, expect: { role: ROLE('dept') } }, ROLE('reader')],
    ['role', { ...reader, expect: { role: 'none' } }, ROLE('reader')],
    ['role', { route: 'aws', claims: { groups: ['readers'] }, expect: { role: ROLE('reader') } }, 'none'],
    ['reason', { ...reader, expect: { reason: 'no_role' } }, 'none'],
    ['reason', { route: 'aws', claims: { sub: 'ada' }, expect: { reason: 'rule_limit' } }, 'no_role'],
    ['sessionName', { ...reader, expect: { sessionName: 'eve' } }, 'ada'],
    ['sessionName', { route: 'aws', claims: { sub: 'ada' }, expect: { sessionName: 'ada' } }, 'none'],
  ])('fails a case with another %s, and says which came instead', async (what, each, actual) => {
    const { code, out } = await test({ name: 'ada is right', ...each })
    expect(code).toBe(1)
    expect(out).toContain('✗ ada is right')
    expect(out).toMatch(new RegExp(`expected ${what} .*\\n +got +${actual.replaceAll('/', '\\/')}\\n`))
    expect(out).toContain('0 passed, 1 failed')
  })

  it('shows of a failure the way of the choice as explain gives it, and what would stop the caller before', async () => {
    const { out } = await test({ name: 'wrong', ...reader, expect: { role: 'none' } })
    const claims = await files.write('claims.json', JSON.stringify(reader.claims))
    const explained = await extauth([
      'explain',
      '-v',
      '--config',
      `${files.directory}/proxy.yaml`,
      '--route',
      'aws',
      '--claims',
      claims,
    ])
    const trace = explained.out.split('\n').filter((line) => /^(mapping|role|session name|note)/.test(line))
    expect(trace).toHaveLength(7)
    for (const line of trace) expect(out).toContain(line)
  })

  it('keeps claims out of what it prints', async () => {
    const { out } = await test({
      ...reader,
      claims: { ...reader.claims, mail: 'ada@secret.example' },
      expect: { role: 'none' },
    })
    expect(out).toContain('✗')
    expect(out).not.toContain('secret.example')
  })

  it('lists what no case reaches, and fails for it when that is asked for', async () => {
    const file = await files.write('cases.json', cases({ ...reader, expect: { role: ROLE('reader') } }))
    const argv = ['test', file, '--config', `${files.directory}/proxy.yaml`]
    const { code, out } = await extauth(argv)
    expect(code).toBe(0)
    expect(out).toMatch(
      /No case reaches:\n {2}default\/aws mapping 2, matcher .* \(evaluated for 1 case, never chosen\), .*proxy\.yaml:\d+\n {2}default\/aws mapping 3/,
    )
    expect(out).toContain('1 of 3 mappings, fallbacks and rules reached')
    expect((await extauth([...argv, '--require-reached'])).code).toBe(1)
  })

  it('runs a folder with configuration and cases together', async () => {
    const both = await folder({ 'a.yaml': CONFIG, 'b.json': cases({ ...reader, expect: { role: ROLE('reader') } }) })
    const { code, out } = await extauth(['test', both.directory, '--verbose'])
    await both.remove()
    expect(out).toMatch(/✓ .*b\.json \(1 case\)\n {2}✓ case 1\n/)
    expect(code).toBe(0)
  })

  it('runs the cases of the lab, which reach every rule', async () => {
    const { code, out } = await extauth(['test', 'config/lab', '--require-reached'])
    expect(out).toContain('11 passed, 0 failed')
    expect(code).toBe(0)
  })
})

describe('cases that cannot be run', () => {
  it.each([
    [
      'an unknown route',
      { ...reader, route: 'gcp', expect: { role: 'none' } },
      /cases\.json:1:\d+ .*spec\.cases\[0\]\.route.*no such route, expected one of aws, strict, github/,
    ],
    [
      'an unknown config',
      { config: 'gcp', claims: {}, expect: { role: 'none' } },
      /spec\.cases\[0\]\.config.*expected one of aws/,
    ],
    [
      'a type without roles',
      { ...reader, route: 'github', expect: { role: 'none' } },
      /type "bearerToken", which has no roles/,
    ],
    [
      'a token that is not there',
      { route: 'aws', token: 'nowhere', expect: { role: 'none' } },
      /spec\.cases\[0\]\.token.*nowhere cannot be read \(ENOENT\)/,
    ],
    [
      'route and config',
      { ...reader, config: 'aws', expect: { role: 'none' } },
      /"route" and "config" are mutually exclusive/,
    ],
    ['neither', { claims: {}, expect: { role: 'none' } }, /expected either "route" or "config"/],
    [
      'claims and token',
      { ...reader, token: 'token', expect: { role: 'none' } },
      /"claims" and "token" are mutually exclusive/,
    ],
    ['a misspelt field', { ...reader, expect: { rol: 'none' } }, /unknown field "rol", did you mean "role"\?/],
    [
      'nothing expected',
      { ...reader, expect: {} },
      /expected at least one of "role", "reason", "sessionName", "allowed" and "rule"/,
    ],
    [
      'a reason beside a role',
      { ...reader, expect: { role: ROLE('reader'), reason: 'no_role' } },
      /with a "reason" gets no role/,
    ],
    ['an unknown reason', { ...reader, expect: { reason: 'no_rol' } }, /did you mean "no_role"\?/],
    [
      'format beside a token',
      { route: 'aws', token: 'token', format: 'opaque', expect: { role: 'none' } },
      /expected "format" only with "claims"/,
    ],
  ])('say so with their place: %s', async (_, each, message) => {
    const { code, out, err } = await test(each)
    expect(err).toMatch(message)
    expect(out).toBe('')
    expect(code).toBe(2)
  })

  it('a config of another namespace is none of theirs', async () => {
    const text = cases({ config: 'aws', claims: {}, expect: { role: 'none' } })
    const file = await files.write('cases.json', text.replace('"name":"roles"', '"name":"roles","namespace":"other"'))
    const { code, err } = await extauth(['test', file, '--config', `${files.directory}/proxy.yaml`])
    expect(err).toContain('no such MCPExternalAuthConfig')
    expect(code).toBe(2)
  })

  it('a folder without cases, no folder, and a broken configuration are usage', async () => {
    expect(await extauth(['test', `${files.directory}/proxy.yaml`])).toMatchObject({
      code: 2,
      err: 'extauth test: no case found; expected a document of kind RoleTest\n',
    })
    expect((await extauth(['test'])).code).toBe(2)
    const file = await files.write('cases.json', cases({ ...reader, expect: { role: 'none' } }))
    const broken = await files.write('broken.txt', CONFIG.replace('claims.dept', 'claim.dept'))
    const { code, err } = await extauth(['test', file, '--config', broken])
    expect(code).toBe(2)
    expect(err).toContain('broken.txt')
  })
})
