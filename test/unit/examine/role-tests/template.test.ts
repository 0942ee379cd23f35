import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { cases, CONFIG, extauth, folder, type Folder } from '../../../support/examine/role-tests/files.ts'

const TEMPLATE = 'arn:aws:iam::{claims.account}:role/mcp-{claims.team}'
const MADE = 'arn:aws:iam::111111111111:role/mcp-search'
const claims = { iss: 'https://issuer.example', sub: 'ada', account: '111111111111', team: 'search' }

const MAPPING = `- { matcher: 'has(claims.account)', roleArnTemplate: "${TEMPLATE}", allowedAccounts: ["111111111111"]`
const SESSION = `sessionTags: [{ key: Team, value: claims.team }], sourceIdentity: 'claims.sub + "@x"', sessionPolicy: { template: '{"Statement":[{"Resource":"{claims.team}"}]}' }`

let files: Folder
beforeAll(async () => {
  files = await folder({
    'proxy.yaml': CONFIG.replace(/- \{ claim: readers.*/, `${MAPPING} }`),
    'claims.json': JSON.stringify(claims),
    'hostile.json': JSON.stringify({ ...claims, team: 'a/b' }),
  })
})
afterAll(() => files.remove())

const explain = (name: string) =>
  extauth([
    'explain',
    '--config',
    `${files.directory}/proxy.yaml`,
    '--route',
    'aws',
    '--claims',
    `${files.directory}/${name}`,
  ])

describe('a role by template', () => {
  it('is explained with its template and the finished ARN', async () => {
    const { code, out } = await explain('claims.json')
    expect(out).toContain(`→ ${TEMPLATE}`)
    expect(out).toContain(`role          ${MADE} (by the mapping that matched)`)
    expect(code).toBe(0)
  })

  it('is refused with the claim that does not do, and without its value', async () => {
    const { code, out } = await explain('hostile.json')
    expect(out).toMatch(/role {10}none: the claim "team" has invalid characters/)
    expect(out).toMatch(/refused {7}role_denied/)
    expect(out).not.toContain('a/b')
    expect(code).toBe(3)
  })

  it('is what role tests expect, and each template has to be reached by one', async () => {
    const list = [
      { route: 'aws', claims, expect: { role: MADE } },
      { route: 'aws', claims: { ...claims, team: '*' }, expect: { role: 'none', reason: 'role_denied' } },
    ]
    const file = await files.write('cases.json', cases(...list))
    const { code, out } = await extauth(['test', file, '--config', `${files.directory}/proxy.yaml`])
    expect(out).toContain('2 passed, 0 failed')
    expect(code).toBe(0)
    const alone = await files.write('cases.json', cases(list[1] ?? {}))
    const tagged = CONFIG.replace(/- \{ claim: readers.*/, `${MAPPING}, ${SESSION} }`).replace(
      'region: eu-central-1',
      'region: eu-central-1\n    source: { type: ambient }',
    )
    const other = await files.write('tagged.txt', tagged)
    const wrong = await files.write('wrong.json', cases({ route: 'aws', claims, expect: { role: 'none' } }))
    const shown = await extauth(['test', wrong, '--config', other])
    for (const line of [
      'tag           Team = search',
      'source id     ada@x',
      'policy        {"Statement":[{"Resource":"search"}]}',
    ])
      expect(shown.out).toContain(line)
    const unreached = await extauth(['test', alone, '--config', `${files.directory}/proxy.yaml`])
    expect(unreached.out).toContain(`→ ${TEMPLATE}`)
  })
})
