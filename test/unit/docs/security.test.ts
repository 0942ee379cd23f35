import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { MUTATIONS } from '../../../scripts/mutants/list.ts'

const ROOT = path.join(import.meta.dirname, '../../..')
const PAGE = readFileSync(path.join(ROOT, 'docs/threat-model.md'), 'utf8')

interface Row {
  readonly threat: string
  /** Files and folders; what has no folder of its own is in that of the one before. */
  readonly tests: readonly string[]
}

/** The rows of the tables whose last column says what shows them. */
function rowsOf(text: string): Row[] {
  const rows: Row[] = []
  for (const line of text.split('\n')) {
    const [threat = '', , shown = ''] = line.split('|').slice(1, -1)
    const names = [...shown.matchAll(/`([^`]+)`/g)].flatMap((match) => match[1] ?? [])
    let folder = ''
    const tests = names.map((name) => {
      if (name.startsWith('test/')) folder = name.endsWith('/') ? name : path.posix.dirname(name)
      return name.startsWith('test/') ? name : path.posix.join(folder, name)
    })
    if (tests.length > 0) rows.push({ threat: threat.trim(), tests })
  }
  return rows
}

const LOGIN = PAGE.split('\n## The embedded authorization server')[1]?.split('\n## ')[0] ?? ''

describe('docs/threat-model.md', () => {
  it('names tests that exist', () => {
    const named = rowsOf(PAGE).flatMap(({ tests }) => tests)
    expect(named.length).toBeGreaterThan(25)
    expect(named.filter((name) => !existsSync(path.join(ROOT, name)))).toEqual([])
  })

  it.each(rowsOf(LOGIN).map((row) => [row.threat, row] as const))(
    'names for “%s” a test that notices when a guard of it is broken',
    (_threat, { tests }) => {
      const noticing = new Set(MUTATIONS.flatMap((mutation) => mutation.tests.map((name) => path.posix.join(name))))
      expect([...noticing].some((name) => tests.some((test) => name === test || name.startsWith(test)))).toBe(true)
    },
  )

  it('says of each threat to a login what shows that it is answered', () => {
    const rows = LOGIN.split('\n').filter((line) => /^\| (?!-|threat )/.test(line))
    expect(rows.length).toBeGreaterThan(10)
    expect(rowsOf(LOGIN)).toHaveLength(rows.length)
  })
})
