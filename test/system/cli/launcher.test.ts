import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

const BIN = path.join(import.meta.dirname, '../../../bin')
const { fingerprint } = createRequire(import.meta.url)('../../../bin/built.cjs') as {
  readonly fingerprint: (file: string) => readonly [number, number, string]
}
let folder: string
const file = (name: string): string => path.join(folder, name)
const runs = (): string => execFileSync(process.execPath, [file('bin/extauth.cjs'), 'x'], { encoding: 'utf8' })

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'extauth-launcher-'))
  cpSync(BIN, file('bin'), { recursive: true })
  for (const name of ['src', 'dist']) mkdirSync(file(name))
  writeFileSync(file('package.json'), '{ "type": "module" }')
  writeFileSync(file('src/main.ts'), "import { other } from './other.ts'\nconsole.log(`sources${other as string}`)")
  writeFileSync(file('src/other.ts'), "export const other = ''")
  writeFileSync(file('dist/main.cjs'), "console.log('dist')")
  const names = ['src/main.ts', 'src/other.ts']
  writeFileSync(
    file('dist/sources.json'),
    JSON.stringify(Object.fromEntries(names.map((name) => [name, fingerprint(file(name))]))),
  )
})
afterEach(() => rmSync(folder, { recursive: true }))

describe('the launcher of a checkout', () => {
  it('runs what was made of the sources while they are the same', () => {
    expect(runs()).toBe('dist\n')
  })

  it('runs it too when they were copied, or written again as they were', () => {
    const { mtime } = statSync(file('src/other.ts'))
    utimesSync(file('src/other.ts'), mtime, new Date(mtime.getTime() + 1000))
    expect(runs()).toBe('dist\n')
  })

  it('runs the sources when one of them has changed, whether or not that made it longer', () => {
    const { atime, mtime } = statSync(file('src/other.ts'))
    writeFileSync(file('src/other.ts'), "export const other = '2'")
    utimesSync(file('src/other.ts'), atime, mtime)
    expect(runs()).toBe('sources2\n')
    writeFileSync(file('src/other.ts'), 'export const other = ``')
    utimesSync(file('src/other.ts'), atime, new Date(mtime.getTime() + 1000))
    expect(runs()).toBe('sources\n')
  })

  it('runs the sources when one has gone, and when nothing says what dist/ was made of', () => {
    writeFileSync(file('src/main.ts'), "console.log('sources')")
    rmSync(file('src/other.ts'))
    expect(runs()).toBe('sources\n')
    rmSync(file('dist/sources.json'))
    expect(runs()).toBe('sources\n')
    rmSync(file('dist'), { recursive: true })
    expect(runs()).toBe('sources\n')
  })

  it('of a package runs dist/', () => {
    rmSync(file('src'), { recursive: true })
    rmSync(file('dist/sources.json'))
    expect(runs()).toBe('dist\n')
  })
})
