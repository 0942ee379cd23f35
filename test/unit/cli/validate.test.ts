import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { runSchema } from '../../../src/cli/schema.ts'
import { runValidate } from '../../../src/cli/validate.ts'
import { ioOf } from '../../support/compose/io.ts'
import { JSON_SCHEMA_NAMES } from '../../../src/load/publish/index.ts'

let root = ''

beforeAll(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'validate-'))
  const put = (name: string, text: string) => writeFile(path.join(root, name), text)
  await put(
    'good.yaml',
    `apiVersion: extauth.dev/v1alpha1
kind: MCPExternalAuthConfig
metadata: { name: token }
spec: { type: bearerToken, bearerToken: { tokenSecretRef: { name: a, key: b } } }
---
apiVersion: v1
kind: ConfigMap
`,
  )
  await put(
    'proxy.yaml',
    `apiVersion: extauth.dev/v1alpha1
kind: ProxyConfig
metadata: { name: local }
spec:
  auth: { mode: anonymous }
  routes:
    - { name: a, path: /a, target: "https://backend.example.com", externalAuthConfigRef: { name: token } }
    - { name: up, path: /up, target: "https://backend.example.com", externalAuthConfigRef: { name: up } }
---
apiVersion: extauth.dev/v1alpha1
kind: MCPExternalAuthConfig
metadata: { name: up }
spec: { type: upstreamInject, upstreamInject: { providerName: github } }
`,
  )
  await put(
    'open.yaml',
    'apiVersion: extauth.dev/v1alpha1\nkind: ProxyConfig\nmetadata: { name: open }\nspec: { listen: { address: ":80" }, auth: { mode: anonymous }, routes: [{ name: a, path: /a, target: "https://b", externalAuthConfigRef: { name: token } }] }\n',
  )
  await put(
    'bad.yaml',
    'apiVersion: extauth.dev/v1alpha1\nkind: MCPExternalAuthConfig\nmetadata: { name: bad }\nspec: { type: bearerTokn }\n',
  )
  await put(
    'workload.yaml',
    'apiVersion: toolhive.stacklok.dev/v1beta1\nkind: MCPServer\nmetadata: { name: w }\nspec: { image: x, transport: stdio }\n',
  )
})
afterAll(() => rm(root, { recursive: true }))

async function run(command: typeof runValidate, ...argv: string[]) {
  const { io, out: written } = ioOf()
  const code = await command(argv, io)
  return { code, stdout: written.stdout.replaceAll(`${root}/`, ''), stderr: written.stderr }
}
const at = (...names: string[]): string[] => names.map((name) => path.join(root, name))

describe('extauth validate', () => {
  test('says nothing but a count when all is well', async () => {
    expect(await run(runValidate, ...at('good.yaml'))).toEqual({
      code: 0,
      stdout: '',
      stderr: '1 file, 1 document, 1 skipped: 0 problems, 0 warnings\n',
    })
  })

  test('exits with 1 and prints each problem on a line of its own', async () => {
    expect(await run(runValidate, ...at('bad.yaml', 'good.yaml', 'missing.yaml'))).toEqual({
      code: 1,
      stdout:
        'missing.yaml:1:1  file not found\nbad.yaml:4:15  MCPExternalAuthConfig/bad  spec.type  "bearerTokn" is not known, did you mean "bearerToken"?\n',
      stderr: '2 files, 2 documents, 1 skipped: 2 problems, 0 warnings\n',
    })
  })

  test('checks what the proxy would check at start', async () => {
    const { code, stdout } = await run(runValidate, ...at('good.yaml', 'open.yaml'))
    expect(code).toBe(1)
    expect(stdout).toContain(
      'open.yaml:4:146  ProxyConfig/open  spec.routes[0].externalAuthConfigRef.name  callers are anonymous',
    )
  })

  test('--output json has the same for machines', async () => {
    const { code, stdout, stderr } = await run(runValidate, '--output', 'json', ...at('bad.yaml'))
    expect(code).toBe(1)
    expect(stderr).toBe('')
    expect(JSON.parse(stdout)).toEqual({
      files: 1,
      documents: 1,
      skipped: 0,
      problems: [
        {
          file: 'bad.yaml',
          line: 4,
          column: 15,
          kind: 'MCPExternalAuthConfig',
          name: 'bad',
          path: 'spec.type',
          message: '"bearerTokn" is not known, did you mean "bearerToken"?',
          reason: 'config_error',
        },
      ],
      warnings: [],
      notes: [],
    })
  })

  test('--verbose also lists what is not read', async () => {
    expect((await run(runValidate, ...at('workload.yaml', 'good.yaml'))).stdout).toBe('')
    expect((await run(runValidate, '--verbose', ...at('workload.yaml', 'good.yaml'))).stdout.split('\n')).toEqual([
      'workload.yaml:4:9  MCPServer/w  spec.image  not read here: another controller runs the server and reads it',
      'workload.yaml:4:19  MCPServer/w  spec.transport  not read here: another controller runs the server and reads it',
      'good.yaml:6:1  ConfigMap  skipped',
      '',
    ])
  })

  test.each([[[]], [['--output', 'xml', 'a']], [['--colour', 'a']]])('%j is wrong usage', async (argv) => {
    expect(await run(runValidate, ...argv)).toMatchObject({ code: 2, stdout: '' })
  })

  test('--help shows the options', async () => {
    const { code, stdout } = await run(runValidate, '--help')
    expect(code).toBe(0)
    expect(stdout).toContain('Usage: extauth validate [options] FILE|DIR…')
    expect(stdout).toContain('--output text|json')
  })
})

describe('extauth schema', () => {
  test('lists the names, prints one, or all', async () => {
    expect((await run(runSchema)).stdout.trim().split('\n')).toEqual(JSON_SCHEMA_NAMES)
    const one = JSON.parse((await run(runSchema, 'proxyconfig')).stdout) as { title: string; properties: object }
    expect(one.title).toBe('ProxyConfig')
    expect(Object.keys(one.properties)).toEqual(['apiVersion', 'kind', 'metadata', 'spec'])
    const all = JSON.parse((await run(runSchema, '--all')).stdout) as Record<string, unknown>
    expect(Object.keys(all)).toEqual(JSON_SCHEMA_NAMES)
    expect(all.ProxyConfig).toEqual(one)
    const combined = JSON.parse((await run(runSchema, '--combined')).stdout) as { $defs: object }
    expect(Object.keys(combined.$defs)).toEqual(JSON_SCHEMA_NAMES)
  })

  test('prints the CustomResourceDefinition of any group', async () => {
    const definition = parse((await run(runSchema, '--crd', '--api-group', 'auth.example.com')).stdout) as {
      metadata: object
      spec: object
    }
    expect(definition.metadata).toEqual({ name: 'mcpexternalauthconfigs.auth.example.com' })
    expect(definition.spec).toMatchObject({ group: 'auth.example.com' })
  })

  test.each([
    [['Nothing']],
    [['--all', '--crd']],
    [['--all', '--combined']],
    [['ProxyConfig', 'AuthSection']],
    [['--crd', '--api-group', 'a b']],
  ])('%j is wrong usage', async (argv) => {
    expect(await run(runSchema, ...argv)).toMatchObject({ code: 2, stdout: '' })
  })
})
