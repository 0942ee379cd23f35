import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { main } from '../../../../src/cli/commands/index.ts'
import type { CheckResult } from '../../../../src/examine/check/result.ts'
import { openLab, type TestLab } from '../../../support/e2e/lab.ts'

let lab: TestLab
beforeAll(async () => {
  lab = await openLab()
})
afterAll(() => lab.close())

async function check(token: string | undefined, ...more: readonly string[]) {
  let [out, err] = ['', '']
  const argv = [
    'check',
    '--config',
    lab.configDirectory,
    ...more,
    ...(token === undefined ? [] : ['--token-file', '-']),
  ]
  const code = await main(argv, {
    stdout: (text) => void (out += text),
    stderr: (text) => void (err += text),
    env: lab.env,
    stdin: () => Promise.resolve(token ?? ''),
    stop: new Promise(() => {}),
    onReload: () => undefined,
  })
  return { code, out, err }
}

describe('extauth check in the lab', () => {
  it('finds everything in order, with a token as well, and prints no credential', async () => {
    const token = await lab.token({ sub: 'alice', groups: ['admins'], claims: { team: 'search' } })
    const { code, out, err } = await check(token, '-v')
    expect(err).toBe('')
    expect(out.split('\n').filter((line) => /^ {2}[!✗]/.test(line))).toEqual([])
    expect(code).toBe(0)
    for (const done of [
      /✓ discovery +lab: issuer http:/,
      /✓ keys +lab: \d+ keys for .*RS256.*ES256/,
      /✓ introspection +lab: accepts the client lab-introspection/,
      /✓ exchange +lab-token-exchange: token exchanged/,
      /✓ exchange +lab-client-credentials: service token obtained/,
      /✓ exchange +lab-xaa: accepts the client lab-login and rejects an invalid token; a real exchange needs the session of a logged-in user/,
      /✓ role +lab-cloud-sts: \S+role\/lab-admin as alice/,
      /✓ assume-role +\S+: STS returned credentials/,
      /✓ identity +of the process: podIdentity: arn:cloud:sts::000000000000:assumed-role\/lab-service\/lab-proxy, valid for 60 min/,
      /✓ hub +\S+lab-hub: \S+assumed-role\/lab-hub\/mcp-extauth, valid for 60 min/,
      /✓ assume-role +\S+lab-search: STS returned credentials of \S+assumed-role\/lab-search\/alice for 15 min, with tags Team, User; a source identity; a session policy/,
      /✓ upstream\.tls +\S+: TLSv1\.3/,
      /✓ upstream +workspace: users are redirected to/,
      /✓ clock +clock: .*STS/,
      /✓ tools +\S+: each pattern matches one of the \d+ tools that the backend lists/,
    ])
      expect(out).toMatch(done)
    // Those without a login: the others need the session of a person.
    expect(out.match(/✓ mcp +\S+ extauth-lab \S+ responds to initialize/g)).toHaveLength(10)
    const secrets = ['lab-bearer-token-that-is-no-secret', token, token.slice(-40)]
    for (const secret of secrets) expect(out).not.toContain(secret)
    expect(lab.backend.sessions()).toEqual([])
  })

  it('without a token says what would need one', async () => {
    const { code, out } = await check(undefined, '-v')
    expect(code).toBe(0)
    expect(out).toMatch(/✓ exchange +lab-token-exchange: accepts the client lab-exchange and rejects an invalid token/)
    expect(out).toMatch(/✓ exchange +lab-client-credentials: service token obtained/)
    expect(out).toMatch(/– role +lab-cloud-sts: needs --token-file/)
    expect(out).toMatch(/\d+ passed, 0 failed, \d+ skipped\n$/)
  })

  it('takes an opaque token, and says of a role that it cannot have one', async () => {
    const token = await lab.token({ sub: 'alice', groups: ['admins'], opaque: true })
    const { code, out } = await check(token, '--route', 'cloud-sts', '--output', 'json')
    const { ok, sections } = JSON.parse(out) as { ok: boolean; sections: { route?: string; checks: CheckResult[] }[] }
    const failed = sections.flatMap(({ checks }) => checks).filter(({ status }) => status === 'failed')
    expect(sections.map(({ route }) => route).filter(Boolean)).toEqual(['cloud-sts'])
    expect(failed).toMatchObject([{ check: 'role', detail: expect.stringMatching(/^opaque_token_unsupported: /) }])
    expect([ok, code]).toEqual([false, 1])
    expect(out).not.toContain(token)
  })

  it.each([
    [['--route', 'nowhere'], 2, /no route "nowhere"; expected one of unauthenticated/],
    [['--target', 'http://127.0.0.1/'], 2, /--target and --external-auth must be given together/],
    [['--namespace', 'other'], 1, /✗ .*no routes to serve/],
  ])('says of %j what is wrong with it', async (more, expected, message) => {
    const { code, err } = await check(undefined, ...more)
    expect(err).toMatch(message)
    expect(code).toBe(expected)
  })
})
