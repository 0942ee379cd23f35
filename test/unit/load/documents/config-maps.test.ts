import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { loadCallersFile, loadRegistryFile, parseDocuments, renderProblem } from '../../../../src/load/index.ts'

const load = (text: string) => parseDocuments([{ path: 'a.yaml', text }])
const problems = (text: string): string[] => load(text).problems.map(renderProblem)

/** Where `needle` is in `text`, as editors count. */
function placeOf(text: string, needle: string): string {
  const before = text.slice(0, text.indexOf(needle)).split('\n')
  return `${before.length}:${(before.at(-1)?.length ?? 0) + 1}`
}

const LITERAL = `# a comment
apiVersion: v1
kind: ConfigMap
metadata: { name: proxy }
data:
  nginx.conf: |
    server { listen 80; }
  proxy.yaml: |-

      apiVersion: extauth.dev/v1alpha1
      kind: ProxyConfig
      metadata: { name: local }
      spec:
        listn: {}
        routes:
          - { name: a, path: /a, target: "https://b", externalAuthConfigRef: { name: tokn } }
      ---
      # the second one
      apiVersion: extauth.dev/v1alpha1
      kind: MCPExternalAuthConfig
      metadata: { name: token }
      spec: { type: bearerTokn }
`

describe('documents in a ConfigMap', () => {
  test('load, and what is not ours is left alone', () => {
    const loaded = load(LITERAL.replace('        listn: {}\n', '').replace('tokn', 'token').replace('Tokn', 'Token'))
    expect(loaded.proxies).toHaveLength(1)
    expect(loaded.declared.map(({ kind, name }) => `${kind}/${name}`)).toEqual([
      'ProxyConfig/local',
      'MCPExternalAuthConfig/token',
    ])
    expect(loaded.skipped).toEqual([])
  })

  test.each([
    ['as it is', LITERAL],
    ['with line ends of Windows', LITERAL.replaceAll('\n', '\r\n')],
    ['with an indentation indicator', LITERAL.replace('|-\n\n', '|4-\n')],
    ['behind an anchor', LITERAL.replace('proxy.yaml: |-', 'proxy.yaml: &text |- # text')],
    ['in a list', `apiVersion: v1\nkind: List\nitems:\n  -\n${LITERAL.replace(/^(?=.)/gm, '    ')}`],
    ['after another document', `a: 1\n---\n${LITERAL}`],
  ])('have the lines and columns of the file, %s', (_name, text) => {
    const found = problems(text)
    const at = (needle: string): string => `a.yaml:${placeOf(text, needle)}  `
    expect(found).toEqual([
      expect.stringContaining(`${at('listn')}ProxyConfig/local  spec.listn  unknown field`),
      expect.stringContaining(`${at('tokn')}ProxyConfig/local  spec.routes[0].externalAuthConfigRef.name  there is no`),
      expect.stringContaining(`${at('bearerTokn')}MCPExternalAuthConfig/token  spec.type  "bearerTokn" is not known`),
    ])
  })

  test.each([
    ['folded', 'proxy.yaml: >-\n    {apiVersion: extauth.dev/v1alpha1, kind: ProxyConfg,\n    metadata: {name: a}}\n'],
    ['double quotes', 'proxy.yaml: "apiVersion: extauth.dev/v1alpha1\\nkind: ProxyConfg\\nmetadata: {name: a}\\n"\n'],
    ['single quotes', "proxy.yaml: '{apiVersion: extauth.dev/v1alpha1,\n    kind: ProxyConfg}'\n"],
  ])('of a scalar with %s have the line of the key', (_name, data) => {
    const text = `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  ${data}`
    expect(problems(text)).toEqual([expect.stringMatching(/^a\.yaml:5:3 .*did you mean "ProxyConfig"/)])
  })

  test('of JSON, too', () => {
    const text = JSON.stringify({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      data: { 'a.json': JSON.stringify({ apiVersion: 'extauth.dev/v1', kind: 'ProxyConfig' }) },
    })
    expect(problems(text)).toEqual([expect.stringMatching(/^a\.yaml:1:\d+ .*unknown version/)])
  })

  test('a text that names our group and can not be read is a problem, another one is not', () => {
    const of = (line: string): string =>
      `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata:\n  x: |\n    ${line}\n    b: [\n`
    expect(problems(of('apiVersion: extauth.dev/v1alpha1'))).toEqual([
      expect.stringMatching(/^a\.yaml:\d+:\d+ {2}ConfigMap\/m {2}data\.x {2}/),
    ])
    expect(problems(of('auth: {{ .Values.auth }}'))).toEqual([])
    expect(load(of('auth: other')).skipped).toHaveLength(1)
  })

  test('configurations of others that have an "auth" are left alone', () => {
    const of = (data: string): string => `apiVersion: v1\nkind: ConfigMap\ndata:\n  x: |\n    ${data}\n`
    expect(load(of('auth: { ldap: true }'))).toMatchObject({ problems: [], callers: [], skipped: [{}] })
    expect(load(of('auth: { mode: anonymous }')).callers).toHaveLength(1)
    expect(load(of('{ auth: { mode: anonymous }, server: 1 }'))).toMatchObject({ problems: [], registries: [] })
  })
})

describe('files with one document', () => {
  let root = ''
  beforeAll(async () => void (root = await mkdtemp(path.join(tmpdir(), 'config-maps-'))))
  afterAll(() => rm(root, { recursive: true }))
  const put = async (text: string): Promise<string> => {
    const file = path.join(root, 'a.yaml')
    await writeFile(file, text)
    return file
  }
  const mapOf = (data: string): string =>
    `apiVersion: v1\nkind: ConfigMap\nmetadata: { name: m }\ndata:\n  other: text\n  a.yaml: |\n${data.replace(/^(?=.)/gm, '    ')}`

  test('may be a ConfigMap that holds it', async () => {
    const callers = await loadCallersFile(await put(mapOf('auth:\n  mode: anonymous\n')), '/secrets')
    expect(callers.config).toEqual({ mode: 'anonymous' })
    const registry = await loadRegistryFile(
      await put(mapOf('auth: { mode: anonymous }\nregistries: [{ name: a, source: { file: s.json } }]\n')),
    )
    expect(registry.config?.registries).toEqual([{ name: 'a', source: { file: path.join(root, 's.json') } }])
  })

  test('have the places of the file', async () => {
    const file = await put(mapOf('auth:\n  mode: anonymous\n  publicPaths: /a\n'))
    const callers = await loadCallersFile(file, '/secrets')
    expect(callers.problems?.map(renderProblem)).toEqual([
      `${file}:9:20  AuthSection  auth.publicPaths  expected a list, found text`,
    ])
  })

  test('a ConfigMap without it is reported', async () => {
    expect((await loadRegistryFile(await put(mapOf('auth: { mode: anonymous }\n')))).problems?.[0]?.message).toBe(
      'expected one document, found 0',
    )
  })
})
