import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import os from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { putCheckout } from '../../support/made-program.ts'

const ROOT = path.join(import.meta.dirname, '../../..')
const MAX_BYTES = 40 * 1000 * 1000

const scratch = mkdtempSync(path.join(os.tmpdir(), 'extauth-package-'))
const [checkout, target] = [path.join(scratch, 'checkout'), path.join(scratch, 'target')]
const installed = path.join(target, 'node_modules/mcp-extauth')
const npm = (cwd: string, ...args: string[]): string =>
  execFileSync('npm', [...args, '--silent', '--ignore-scripts', '--offline'], { cwd, encoding: 'utf8' })
const filesBelow = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name))

beforeAll(() => {
  const { files } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8')) as { files: string[] }
  const packed = files.filter((name) => !name.startsWith('!') && name !== 'dist')
  putCheckout(checkout)
  for (const name of packed) cpSync(path.join(ROOT, name), path.join(checkout, name), { recursive: true })
  mkdirSync(target)
  npm(checkout, 'pack', '--pack-destination', scratch)
  const tarball = readdirSync(scratch).find((name) => name.endsWith('.tgz')) ?? ''
  npm(target, 'install', path.join(scratch, tarball), '--omit=dev', '--omit=optional')
}, 120_000)
afterAll(() => rmSync(scratch, { recursive: true, force: true }))

describe('the installed package', () => {
  it('has no dependencies, no sources and no source maps, and is small', () => {
    expect(readdirSync(path.join(target, 'node_modules')).filter((name) => !name.startsWith('.'))).toEqual([
      'mcp-extauth',
    ])
    const files = filesBelow(installed)
    expect(files.filter((file) => /\.(map|ts)$|sources\.json$/.test(file))).toEqual([])
    expect(files.reduce((sum, file) => sum + statSync(file).size, 0)).toBeLessThan(MAX_BYTES)
  })

  it('loads each late package from its own files', () => {
    const load = createRequire(path.join(installed, 'package.json'))
    const folder = path.join(installed, 'dist/packages')
    const late = filesBelow(folder)
    expect(late.length).toBeGreaterThan(5)
    for (const file of late)
      expect([path.relative(folder, file), Object.keys(load(file) as object).length > 0]).toEqual([
        path.relative(folder, file),
        true,
      ])
  })

  it('runs', () => {
    const extauth = (...args: string[]): string =>
      execFileSync(path.join(target, 'node_modules/.bin/extauth'), args, { cwd: target, encoding: 'utf8' })
    expect(extauth('version')).toMatch(/^mcp-extauth \d/)
    extauth('validate', path.join(installed, 'config/lab'))
  })
})
