import { existsSync, globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { parseReliedOn } from '../../support/relied-on.ts'

const ROOT = path.join(import.meta.dirname, '../../..')
const ROWS = parseReliedOn(readFileSync(path.join(ROOT, 'docs/engineering/relied-on.md'), 'utf8'))
/** A file inside of a package, which its documentation does not name. */
const INSIDE = /from '((?:@[^/']+\/)?[^./@'][^/']*)\/(?:lib|dist|src|build)\//g
/** Names that only the inside of a package has. */
const PRIVATE: readonly (readonly [string, RegExp])[] = [
  ['zod', /\._zod\b/],
  ['@bufbuild/cel', /Symbol\.for\('@bufbuild\/cel/],
]

describe('the page of what is relied on', () => {
  it('names files and tests that exist', () => {
    expect(ROWS.length).toBeGreaterThan(6)
    for (const { where, tests } of ROWS) {
      expect(where.length).toBeGreaterThan(0)
      expect(tests.length).toBeGreaterThan(0)
      expect([...where, ...tests].filter((name) => !existsSync(path.join(ROOT, name)))).toEqual([])
    }
  })

  it('has every file of the sources that reaches into a package', () => {
    const missing = globSync('src/**/*.ts', { cwd: ROOT }).flatMap((file) => {
      const text = readFileSync(path.join(ROOT, file), 'utf8')
      const reached = [
        ...[...text.matchAll(INSIDE)].map(([, name = '']) => name),
        ...PRIVATE.filter(([, pattern]) => pattern.test(text)).map(([name]) => name),
      ]
      return [...new Set(reached)]
        .filter((name) => !ROWS.some((row) => row.name === name && row.where.some((place) => file.startsWith(place))))
        .map((name) => `${file}: ${name}`)
    })
    expect(missing).toEqual([])
  })
})
