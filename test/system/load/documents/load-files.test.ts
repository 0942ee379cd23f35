import { execFileSync } from 'node:child_process'
import { mkdtemp, mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { loadCallersFile, loadFiles, loadRegistryFile, renderProblem } from '../../../../src/load/index.ts'
import { externalAuth, OAUTH, SPECS } from '../../../support/load/documents/build.ts'

let root = ''
const at = (name: string): string => path.join(root, name)
const put = async (name: string, content: string | Uint8Array): Promise<string> => {
  await mkdir(path.dirname(at(name)), { recursive: true })
  await writeFile(at(name), content)
  return at(name)
}
const problemsOf = async (name: string): Promise<string[]> =>
  (await loadFiles([at(name)])).problems.map((problem) => renderProblem(problem).replace(`${root}/`, ''))
const auth = (name: string): string => JSON.stringify(externalAuth(SPECS.bearerToken, name))

beforeAll(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'resources-'))
})
afterAll(() => rm(root, { recursive: true }))

describe('loadFiles', () => {
  test('takes files and directories, each file once, without hidden ones and subdirectories', async () => {
    await put('dir/b.yaml', auth('b'))
    await put('dir/a.json', auth('a'))
    await put('dir/c.yml', auth('c'))
    await put('dir/notes.txt', 'not: [yaml')
    await put('dir/.hidden.yaml', 'not: [yaml')
    await put('dir/below/d.yaml', auth('d'))
    const loaded = await loadFiles([at('dir'), at('dir/b.yaml')])
    expect(loaded.problems).toEqual([])
    expect(loaded.auths.map((item) => item.document.metadata.name)).toEqual(['a', 'b', 'c'])
  })

  test('reads a mounted ConfigMap once, through its symlinks', async () => {
    await put('mount/..2026_01/a.yaml', auth('a'))
    await symlink('..2026_01', at('mount/..data'))
    await symlink('..data/a.yaml', at('mount/a.yaml'))
    const loaded = await loadFiles([at('mount')])
    expect(loaded.problems).toEqual([])
    expect(loaded.auths).toHaveLength(1)
  })

  test('a pipe is refused without being waited for', async () => {
    await mkdir(at('piped'))
    execFileSync('mkfifo', [at('piped/a.yaml')])
    expect(await problemsOf('piped')).toEqual(['piped/a.yaml:1:1  not a regular file'])
  })

  test('what can not be read is a problem, and hides no other file', async () => {
    await put('good.yaml', auth('a'))
    await mkdir(at('empty'))
    const loaded = await loadFiles([at('missing.yaml'), at('empty'), at('good.yaml')])
    expect(loaded.problems.map((problem) => problem.message)).toEqual([
      'file not found',
      'no file in this directory ends in .yaml, .yml or .json; supported kinds: MCPExternalAuthConfig, MCPOIDCConfig, MCPTelemetryConfig, MCPToolConfig, ProxyConfig, RoleTest, MCPServer, MCPRemoteProxy, MCPServerEntry, VirtualMCPServer',
    ])
    expect(loaded.auths).toHaveLength(1)
    expect((await loadFiles(['/dev/null'])).problems.map((problem) => problem.message)).toEqual(['not a regular file'])
  })

  test.each([
    [
      'latin1.yaml',
      Uint8Array.from([0x61, 0x3a, 0x20, 0x62, 0x0a, 0x63, 0x3a, 0x20, 0xe4, 0x0a]),
      'latin1.yaml:2:4  not UTF-8, expected UTF-8 text',
    ],
    ['cut.yaml', Uint8Array.from([0x61, 0x3a, 0x20, 0xe2, 0x82]), 'cut.yaml:1:4  not UTF-8, expected UTF-8 text'],
    ['utf16.yaml', Uint8Array.from([0xff, 0xfe, 0x61, 0x00]), 'utf16.yaml:1:1  not UTF-8, expected UTF-8 text'],
  ])('%s is refused with the place of its first wrong byte', async (name, content, problem) => {
    await put(name, content)
    expect(await problemsOf(name)).toEqual([problem])
  })

  test('a file of 11 MiB is refused without being read', async () => {
    await put('large.yaml', `a: ${'x'.repeat(11 * 1024 * 1024)}`)
    expect(await problemsOf('large.yaml')).toEqual([
      'large.yaml:1:1  the file is too large: 11534339 bytes, expected at most 8388608; split it into several files',
    ])
  })

  test('a byte order mark is no problem', async () => {
    await put('bom.json', `\uFEFF${auth('a')}`)
    expect(await problemsOf('bom.json')).toEqual([])
  })
})

describe('files with one thing in them', () => {
  test('the registry file, with absolute paths', async () => {
    const providers = [{ ...OAUTH.oauth.providers[0], caCertPath: 'ca.pem', allowPrivateIP: true }]
    const registries = [
      { name: 'default', source: { file: 'servers.json' } },
      { name: 'more', source: { directory: '../data' } },
      { name: 'far', source: { url: 'https://r.example.com/v0.1/servers' } },
    ]
    const file = await put(
      'registry/config.yaml',
      JSON.stringify({ auth: { oauth: { ...OAUTH.oauth, providers } }, registries }),
    )
    const { config, problems } = await loadRegistryFile(file)
    expect(problems).toBeUndefined()
    expect(config?.registries.map((item) => item.source)).toEqual([
      { file: at('registry/servers.json') },
      { directory: at('data') },
      { url: 'https://r.example.com/v0.1/servers' },
    ])
    expect(config?.auth).toMatchObject({ oauth: { providers: [{ caCertPath: at('registry/ca.pem') }] } })
  })

  test.each([
    ['registries: []', 'auth.oauth  missing'],
    ['auth: { mode: anonymous }', 'registries  missing, expected a list'],
    ['auth: { mode: anonymous }\nregistires: [{ name: a, source: { file: b } }]', 'did you mean "registries"?'],
    ['a: 1\n---\nb: 2', 'expected one document, found 2'],
    ['', 'expected one document, found 0'],
    ['a: [', 'registry.yaml:1:5'],
  ])('a registry file with %j is refused', async (text, problem) => {
    const { problems } = await loadRegistryFile(await put('registry.yaml', text))
    expect(problems?.map(renderProblem).join('\n')).toContain(problem)
  })

  test('plain http beyond the cluster is refused there, in the cluster it is a warning', async () => {
    const write = (issuerUrl: string) =>
      put(
        'http.yaml',
        JSON.stringify({
          auth: { oauth: { ...OAUTH.oauth, providers: [{ ...OAUTH.oauth.providers[0], issuerUrl }] } },
          registries: [{ name: 'a', source: { file: 'b' } }],
        }),
      )
    const refused = await loadRegistryFile(await write('http://idp.example.com'))
    expect(refused.problems?.map((problem) => problem.path)).toEqual(['auth.oauth.providers[0].issuerUrl'])
    const warned = await loadRegistryFile(await write('http://keycloak:8080'))
    expect(warned.config).toBeDefined()
    expect(warned.warnings?.join()).toContain('plain http')
  })

  test('the callers file holds the section, alone or under its name', async () => {
    const alone = await loadCallersFile(await put('callers.yaml', JSON.stringify(OAUTH)), '/secrets')
    const named = await loadCallersFile(await put('named.yaml', JSON.stringify({ auth: OAUTH })), '/secrets')
    expect(alone.config).toMatchObject({ mode: 'oauth', oauth: { resourceUrl: OAUTH.oauth.resourceUrl } })
    expect(named.config).toEqual(alone.config)
    expect((await loadCallersFile(await put('open.yaml', 'mode: anonymous'), '/secrets')).config).toEqual({
      mode: 'anonymous',
    })
    const wrong = await loadCallersFile(await put('wrong.yaml', 'mode: oauth\noauth:\n  resourceURL: x'), '/secrets')
    expect(wrong.problems?.map((problem) => [problem.line, problem.path])).toEqual([
      [2, 'oauth.resourceUrl'],
      [2, 'oauth.providers'],
      [3, 'oauth.resourceURL'],
    ])
  })
})
