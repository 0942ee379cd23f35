import { spawnSync } from 'node:child_process'
import { appendFileSync, mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { putCheckout } from '../support/made-program.ts'

const folder = mkdtempSync(path.join(os.tmpdir(), 'extauth-edited-program-'))

beforeAll(() => putCheckout(folder), 120_000)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const runs = (...args: string[]): { stdout: string; stderr: string; status: number | null } =>
  spawnSync(process.execPath, [path.join(folder, 'bin/extauth.cjs'), ...args], {
    cwd: folder,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  })

it('an edited checkout starts from what was made of its other files, and each command does its job', () => {
  // What is made of the sources has to be possible for all of them.
  appendFileSync(path.join(folder, 'src/main.ts'), "process.stderr.write(`${new Error('edited').stack}\\n`)\n")
  appendFileSync(path.join(folder, 'src/core/secret.ts'), '// edited\n')
  for (const [args, expected] of [
    [['--help'], /Commands:/],
    [['validate', 'config/lab'], /^/],
    [['schema', '--combined'], /"\$schema"/],
    [['test', 'config/lab'], /passed/],
    [['completion', 'bash'], /complete /],
  ] as const) {
    const { stdout, stderr, status } = runs(...args)
    expect(stderr).toMatch(/^Error: edited\n.*src\/main\.ts:\d+:\d+\)\n.*dist\/checkout\/start\.cjs/)
    expect(stdout).toMatch(expected)
    expect(status).toBe(0)
  }
}, 120_000)
