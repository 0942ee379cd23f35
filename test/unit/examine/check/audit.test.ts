import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { main } from '../../../../src/cli/commands/index.ts'
import type { CheckResult } from '../../../../src/examine/check/result.ts'
import { mcp, site, type Site } from '../../../support/examine/check/rig.ts'

const directory = mkdtempSync(path.join(tmpdir(), 'extauth-check-audit-'))
let backend: Site
beforeAll(async () => {
  mkdirSync(path.join(directory, 'secrets/audit'), { recursive: true })
  mkdirSync(path.join(directory, 'open'))
  chmodSync(path.join(directory, 'open'), 0o777)
  writeFileSync(path.join(directory, 'there.jsonl'), '{"torn', { mode: 0o600 })
  writeFileSync(path.join(directory, 'secrets/audit/short'), 'x'.repeat(31))
  writeFileSync(path.join(directory, 'secrets/audit/long'), 'x'.repeat(32))
  backend = await site({ '/mcp': mcp() })
})
afterAll(async () => {
  await backend.close()
  rmSync(directory, { recursive: true })
})

/** The lines of `extauth check` about the trail, its file and its key. */
async function check(audit: object): Promise<readonly CheckResult[]> {
  const file = path.join(directory, 'proxy.yaml')
  const documents = [
    { kind: 'MCPExternalAuthConfig', metadata: { name: 'none' }, spec: { type: 'unauthenticated' } },
    {
      kind: 'ProxyConfig',
      metadata: { name: 'p' },
      spec: {
        auth: { mode: 'anonymous' },
        secretsDirectory: './secrets',
        audit,
        routes: [{ name: 'r', path: '/r', target: `${backend.url}/mcp`, externalAuthConfigRef: { name: 'none' } }],
      },
    },
  ]
  const texts = documents.map((one) => JSON.stringify({ apiVersion: 'extauth.dev/v1beta1', ...one }))
  writeFileSync(file, texts.join('\n---\n'))
  let out = ''
  await main(['check', '--config', file, '--output', 'json'], {
    stdout: (text) => void (out += text),
    stderr: () => undefined,
    env: {},
    stdin: () => Promise.resolve(''),
    stop: new Promise(() => {}),
    onReload: () => undefined,
  })
  const { sections } = JSON.parse(out) as { sections: { title: string; checks: CheckResult[] }[] }
  return sections.find(({ title }) => title === 'proxy')?.checks ?? []
}

describe('extauth check tests the audit trail', () => {
  it('whose file exists, and changes nothing in it', async () => {
    expect(await check({ file: './there.jsonl' })).toMatchObject([
      { check: 'audit', status: 'ok', detail: 'can be appended to' },
    ])
    expect(readFileSync(path.join(directory, 'there.jsonl'), 'utf8')).toBe('{"torn')
  })

  it('whose file does not exist yet, and creates none', async () => {
    expect(await check({ file: './new.jsonl' })).toMatchObject([
      { check: 'audit', status: 'ok', detail: `will be created in ${directory}` },
    ])
    expect(readdirSync(directory)).not.toContain('new.jsonl')
  })

  it('on standard output', async () => {
    expect(await check({ file: 'stdout' })).toMatchObject([{ status: 'ok', detail: 'events go to standard output' }])
  })

  it.each([
    ['a directory that does not exist', './gone/audit.jsonl', 'ENOENT'],
    ['a directory in its place', './secrets', 'EISDIR'],
  ])('that cannot be written: %s', async (_what, file, code) => {
    expect(await check({ file })).toMatchObject([
      {
        check: 'audit',
        status: 'failed',
        detail: `cannot be opened for writing (${code})`,
        remedy: expect.stringContaining('audit.file') as string,
      },
    ])
  })

  it('that all users of the machine could replace', async () => {
    writeFileSync(path.join(directory, 'open/audit.jsonl'), '')
    expect(await check({ file: './open/audit.jsonl' })).toMatchObject([
      { check: 'audit', status: 'ok' },
      { check: 'permissions', status: 'failed' },
    ])
  })

  it('and the key of its fingerprints', async () => {
    const lines = async (key: string) =>
      (await check({ file: 'stdout', keySecretRef: { name: 'audit', key } })).map(
        ({ check: name, status, detail }) => `${name} ${status} ${detail}`,
      )
    expect(await lines('long')).toEqual([expect.any(String), expect.stringMatching(/^secret ok /)])
    expect(await lines('short')).toContain('audit failed the key of fingerprints has 31 bytes, expected at least 32')
    expect(await lines('gone')).toEqual([
      expect.any(String),
      expect.stringMatching(/^secret (failed|warning) .*\(audit\.keySecretRef\)$/),
    ])
  })
})
