import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openLab, type TestLab } from '../../support/e2e/lab.ts'

const ROOT = path.join(import.meta.dirname, '../../..')
const PAGE = readFileSync(path.join(ROOT, 'docs/mcp-clients.md'), 'utf8')
const RUNNABLE = [...PAGE.matchAll(/<!-- run -->\s+```(sh|js)\n(.*?)```/gs)].map(
  ([, language = '', text = '']) => [`${language}: ${text.trim().split('\n')[0]}`, language, text] as const,
)

let lab: TestLab
let token: string
let folder: string

beforeAll(async () => {
  lab = await openLab()
  token = await lab.token({ sub: 'alice', groups: ['admins', 'dev'] })
  // Below the repository, so that the packages are found.
  mkdirSync(path.join(ROOT, 'node_modules/.cache'), { recursive: true })
  folder = mkdtempSync(path.join(ROOT, 'node_modules/.cache/docs-'))
})
afterAll(async () => {
  rmSync(folder, { recursive: true })
  await lab.close()
})

function run(command: string, args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    const env = { ...process.env, token }
    execFile(command, args, { cwd: ROOT, env, timeout: 60_000 }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), stdout, stderr }),
    )
  })
}

describe('docs/mcp-clients.md', () => {
  it('has something to run for each kind of client', () => {
    expect(RUNNABLE.map(([, language]) => language)).toEqual(['sh', 'sh', 'js', 'js', 'js', 'sh'])
  })

  it.each(RUNNABLE)(
    'runs against the lab: %s',
    async (_name, language, text) => {
      const script = text
        .replaceAll('http://127.0.0.1:8080', lab.url)
        .replaceAll('http://127.0.0.1:8082', lab.identity.url)
      const file = path.join(folder, 'client.mjs')
      if (language === 'js') writeFileSync(file, script)
      const { code, stdout, stderr } = await (language === 'js'
        ? run(process.execPath, [file])
        : run('bash', ['-euo', 'pipefail', '-c', script]))
      expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' })
      expect(stdout).toContain('show_request')
      expect(stdout).not.toContain('"error"')
    },
    60_000,
  )

  it('shows settings of editors that are JSON', () => {
    const blocks = [...PAGE.matchAll(/```json\n(.*?)```/gs)].map(([, text = '']) => JSON.parse(text) as object)
    expect(blocks).toHaveLength(4)
  })

  it('shows the discovery document as it is', async () => {
    const shown = /```json\n\s+(\{\s+"resource".*?)```/s.exec(PAGE)?.[1] ?? ''
    const response = await fetch(`${lab.url}/.well-known/oauth-protected-resource/bearer-token`)
    const real = JSON.stringify(await response.json())
      .replaceAll(lab.url, 'http://127.0.0.1:8080')
      .replaceAll(lab.identity.url, 'http://127.0.0.1:8082')
    expect(JSON.parse(shown)).toEqual(JSON.parse(real))
  })
})
