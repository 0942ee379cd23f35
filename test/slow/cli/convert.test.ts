import { expect, test } from 'vitest'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { spawnSync } from 'node:child_process'

const ROOT = path.join(import.meta.dirname, '../../..')
const extauth = (args: readonly string[], input = '') =>
  spawnSync(process.execPath, ['bin/extauth.cjs', 'convert', ...args], { cwd: ROOT, input, encoding: 'utf8' })
const proxy = (more = ''): string =>
  `apiVersion: toolhive.stacklok.dev/v1beta1\nkind: MCPRemoteProxy\nmetadata: { name: p }\nspec:\n  remoteUrl: https://a.example.com/mcp\n${more}`

test('a file, a folder and standard input are converted; the exit code says whether all is kept', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'extauth-convert-'))
  try {
    writeFileSync(path.join(folder, 'p.yaml'), proxy())
    for (const [args, input] of [
      [[path.join(folder, 'p.yaml')], ''],
      [[folder], ''],
      [['-'], proxy()],
    ] as const) {
      const { status, stdout, stderr } = extauth(args, input)
      expect([status, stderr]).toEqual([0, ''])
      expect(stdout).toContain('apiVersion: extauth.dev/v1beta1')
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
  const refused = extauth(['-'], proxy('  webhookConfigRef: { name: checks }\n'))
  expect(refused.status).toBe(1)
  expect(refused.stderr).toContain('MCPRemoteProxy/p  spec.webhookConfigRef  no webhooks are asked about requests here')
  expect(refused.stdout).toContain('webhookConfigRef: { name: checks }')
}, 60_000)

test('unreadable input is reported with its location, and nothing is printed', () => {
  const { status, stdout, stderr } = extauth(['-'], 'kind: [')
  expect([status, stdout]).toEqual([1, ''])
  expect(stderr).toContain('<stdin>:')
  expect(extauth([]).status).toBe(2)
  const nothing = extauth(['-'], '# kubectl has failed\n')
  expect([nothing.status, nothing.stdout, nothing.stderr]).toEqual([
    1,
    '',
    'extauth convert: the input contains no document.\n',
  ])
}, 60_000)
