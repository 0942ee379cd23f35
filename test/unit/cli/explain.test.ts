import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runExplain } from '../../../src/cli/explain.ts'
import type { ExplainReport } from '../../../src/examine/explain/explain-report.ts'

import { CONFIG as ROLES, tokenOf } from '../../support/examine/role-tests/files.ts'

let directory: string
const file = (name: string) => path.join(directory, name)

/** With a last mapping that looks at a claim, and secrets that are not needed. */
const CONFIG = ROLES.replace(
  /- \{ matcher: 'has\(.*/,
  '- { claim: everyone, roleArn: "arn:aws:iam::123456789012:role/all", priority: 9 }',
).replace('  auth:\n', '  secretsDirectory: ./nowhere\n  auth:\n')
const CLAIMS = {
  iss: 'https://issuer.example',
  aud: 'mcp',
  sub: 'auth0|ada',
  exp: 4_102_444_800,
  groups: ['readers'],
  secret: 'do-not-print',
}
const TOKEN = tokenOf(CLAIMS)

beforeAll(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'explain-'))
  await writeFile(file('proxy.yaml'), CONFIG)
  await writeFile(file('claims.json'), JSON.stringify(CLAIMS))
  await writeFile(file('token'), `${TOKEN}\n`)
  await writeFile(file('opaque'), 'opaque-token')
  await writeFile(file('broken.json'), '{"sub":')
  await writeFile(file('broken.yaml'), CONFIG.replace('claims.dept', 'claim.dept'))
})
afterAll(() => rm(directory, { recursive: true }))

async function explain(args: string, stdin = ''): Promise<{ code: number; out: string; err: string }> {
  let out = ''
  let err = ''
  const argv = args.split(' ').map((word) => (/^[a-z]+\.(yaml|json)$|^(token|opaque)$/.test(word) ? file(word) : word))
  const code = await runExplain(argv, {
    stdout: (text) => (out += text),
    stderr: (text) => (err += text),
    env: {},
    stdin: () => Promise.resolve(stdin),
    stop: Promise.resolve(''),
    onReload: () => undefined,
  })
  return { code, out, err }
}

async function report(args: string, stdin?: string): Promise<ExplainReport> {
  return JSON.parse((await explain(`${args} --output json`, stdin)).out) as ExplainReport
}

const outcomes = ({ decision }: ExplainReport) =>
  decision?.choice.steps.map(({ mapping, outcome }) => `${mapping} ${outcome}`)

describe('extauth explain', () => {
  test.each([
    ['on one line', JSON.stringify(CLAIMS)],
    ['on several', ` ${JSON.stringify(CLAIMS, null, 1)}`],
  ])('takes claims on the command line, %s', async (_name, json) => {
    let out = ''
    const argv = ['--config', file('proxy.yaml'), '--route', 'aws', '--claims', json, '--output', 'json']
    const io = { stdin: () => Promise.resolve(''), stop: Promise.resolve(''), onReload: () => undefined }
    const code = await runExplain(argv, { ...io, env: {}, stderr: () => undefined, stdout: (text) => (out += text) })
    expect([code, (JSON.parse(out) as ExplainReport).decision?.choice.roleArn]).toEqual([
      0,
      'arn:aws:iam::123456789012:role/reader',
    ])
  })

  test('names a claim that the issuer left out, and denies', async () => {
    const { groups: _, ...rest } = CLAIMS
    const claims = JSON.stringify({ ...rest, _claim_names: { groups: 'src1' } })
    const { code, out } = await explain(`--config proxy.yaml --route aws -v --claims ${claims}`)
    expect(code).toBe(3)
    expect(out).toMatch(/omitted +claim "everyone" .* — the issuer omitted the claim "groups" from the token/)
    expect(out).toMatch(/role +none: the issuer omitted "groups" from the token/)
  })

  test('shows each mapping in the order of evaluation, the role and what was changed in the session name', async () => {
    const { code, out } = await explain('--config proxy.yaml --route aws -v --claims claims.json')
    expect(code).toBe(0)
    expect(out).toMatch(/config +default\/aws \(cloudSts\), .*proxy\.yaml:\d+, hash [0-9a-f]{16}/)
    expect(out).toMatch(/mapping 2 +error +matcher .* line 1, column 7: there is no such key: "dept"/)
    expect(out).toMatch(/mapping 3 +not matched/)
    expect(out).toMatch(/mapping 1 +matched +claim "readers"/)
    expect(out).toMatch(/role +arn:aws:iam::123456789012:role\/reader/)
    expect(out).toMatch(/session name +auth0-ada-[0-9a-f]{16} \(claim "sub", changed: /)
    expect(out).toMatch(/signature +not verified/)
    expect(out).toMatch(/adds +x-amz-security-token/)
    expect(out).toMatch(/removes +authorization/)
    // More than a hundred headers are no reason to look for the role.
    expect(out.split('\n').length).toBeLessThan(60)
    expect(Math.max(...out.split('\n').map((line) => line.length))).toBeLessThan(250)
    expect(out).not.toMatch(/do-not-print|note /)
  })

  test('shows whose identity goes to STS, and the hub', async () => {
    expect((await explain('--config proxy.yaml --route aws -v --claims claims.json')).out).toMatch(
      /^source +the caller's token$/m,
    )
    const hub = 'arn:aws:iam::123456789012:role/hub'
    const source = `source: { type: role, through: { roleArn: "${hub}", source: { type: ambient, chain: [instance, profile], profile: dev } } }\n    roleMappings:`
    await writeFile(file('hub.yaml'), CONFIG.replace('roleMappings:', source))
    const { out } = await explain('--config hub.yaml --route aws -v --claims claims.json')
    expect(out).toMatch(
      /^source +the identity of the process: instance, profile, profile "dev"\nhub +arn:aws:iam::123456789012:role\/hub$/m,
    )
    expect((await report('--config hub.yaml --route aws --claims claims.json')).source).toEqual({
      type: 'role',
      chain: ['instance', 'profile'],
      profile: 'dev',
      hub,
    })
  })

  test('gives the same for the token as for its claims, without repeating the token', async () => {
    const fromToken = await explain('--config proxy.yaml --route aws --token-file token')
    const fromClaims = await explain('--config proxy.yaml --route aws --claims claims.json')
    expect(fromToken).toEqual(fromClaims)
    expect(fromToken.out).not.toContain(TOKEN)
  })

  test('takes the token or the claims from standard input', async () => {
    expect(
      (await report('--config proxy.yaml --route aws --token-file -', `Bearer ${TOKEN}`)).decision?.refusal,
    ).toBeUndefined()
    expect((await report('--config proxy.yaml --route aws --claims -', '{"sub":"a"}')).decision?.refusal).toBe(
      'no_role',
    )
  })

  test('evaluates mappings after the match only on request', async () => {
    const claims = JSON.stringify({ ...CLAIMS, dept: 'x' })
    expect(outcomes(await report('--config proxy.yaml --route aws --claims -', claims))).toEqual([
      '2 matched',
      '3 not_evaluated',
      '1 not_evaluated',
    ])
    expect(outcomes(await report('--config proxy.yaml --route aws --all --claims -', claims))).toEqual([
      '2 matched',
      '3 not_matched',
      '1 matched',
    ])
  })

  test.each([
    ['no role', 'aws', '{"sub":"a","dept":1,"groups":[]}', 'no_role'],
    ['a matcher that fails where the route denies', 'strict', '{"sub":"a","groups":["readers"]}', 'matcher_error'],
    ['no session name', 'aws', '{"groups":["readers"]}', 'session_name_missing'],
  ])('ends with 3 for %s', async (_what, route, claims, refusal) => {
    const { code, out } = await explain(`--config proxy.yaml --route ${route} --claims -`, claims)
    expect(code).toBe(3)
    expect(out).toMatch(new RegExp(`refused +${refusal}`))
    expect((await report(`--config proxy.yaml --route ${route} --claims -`, claims)).cacheKey).toBeUndefined()
  })

  test('ends with 3 for an opaque token, which STS does not take', async () => {
    const { code, out } = await explain('--config proxy.yaml --route aws --token-file opaque')
    expect({ code, out }).toEqual({
      code: 3,
      out: expect.stringMatching(/refused +opaque_token_unsupported/) as string,
    })
    expect(out).not.toContain('opaque-token\n')
  })

  test('says what a type without roles adds, and reads no secret for it', async () => {
    const { code, out } = await explain('--config proxy.yaml --route github --claims claims.json')
    expect(code).toBe(0)
    expect(out).toMatch(/adds +authorization: Bearer \(the secret\)/)
    expect(out).toMatch(/role +none: type bearerToken has no roles/)
  })

  test.each([
    ['another issuer', { ...CLAIMS, iss: 'https://other.example' }, /no provider of this route has this issuer/],
    ['another audience', { ...CLAIMS, aud: ['x'] }, /the audience is not that of the provider/],
    ['a token that has expired', { ...CLAIMS, exp: 1 }, /the token is expired/],
    ['a token without end', { ...CLAIMS, exp: undefined }, /no exp/],
  ])('notes %s', async (_what, claims, note) => {
    const { notes } = await report('--config proxy.yaml --route aws --claims -', JSON.stringify(claims))
    expect(notes).toEqual([expect.stringMatching(note)])
  })

  test('the parts of the cache key are hashed and differ with what they are of', async () => {
    const one = await report('--config proxy.yaml --route aws --claims claims.json')
    const other = await report(
      '--config proxy.yaml --route aws --claims -',
      JSON.stringify({ ...CLAIMS, aud: ['mcp', 'x'] }),
    )
    expect(Object.keys(one.cacheKey ?? {})).toEqual([
      'config',
      'configHash',
      'issuer',
      'identity',
      'role',
      'sessionName',
      'claims',
    ])
    expect(one.cacheKey?.['claims']).not.toBe(other.cacheKey?.['claims'])
    expect({ ...one.cacheKey, claims: '' }).toEqual({ ...other.cacheKey, claims: '' })
    expect(Object.values(one.cacheKey ?? {}).join(' ')).not.toMatch(/ada|issuer\.example/)
  })

  test.each([
    ['--route aws --claims claims.json', /needs --config/],
    ['--config proxy.yaml --route aws', /either --token-file FILE or --claims FILE/],
    ['--config proxy.yaml --route aws --claims claims.json --token-file token', /either/],
    ['--config proxy.yaml --claims claims.json', /--route is required; expected one of aws, strict, github/],
    ['--config proxy.yaml --route no --claims claims.json', /no route "no"/],
    ['--config proxy.yaml --route aws --claims absent.json', /cannot be read \(ENOENT\)/],
    ['--config proxy.yaml --route aws --claims broken.json', /JSON object/],
    ['--config proxy.yaml --route aws --claims claims.json --output xml', /text or json/],
    ['--config proxy.yaml --route aws --token abc', /Unknown option --token/],
  ])('refuses %s as wrong usage', async (args, message) => {
    const { code, out, err } = await explain(args)
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err).toMatch(message)
  })

  test('a configuration that can not be used ends with 2 and every problem', async () => {
    const { code, err, out } = await explain('--config broken.yaml --route aws --claims claims.json')
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err).toMatch(/broken\.yaml.*unknown variable "claim"/)
  })
})
