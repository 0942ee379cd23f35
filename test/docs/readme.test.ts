import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'

const ROOT = path.join(import.meta.dirname, '../..')
const read = (name: string): string => readFileSync(path.join(ROOT, name), 'utf8')
const MOST_LINES = 200
const LONGEST_LINE = 250

describe('the front door', () => {
  it('is a README that can be read in one go', () => {
    expect(read('README.md').trimEnd().split('\n').length).toBeLessThanOrEqual(MOST_LINES)
  })

  it.each(['README.md', 'docs/README.md'])('has no long lines outside of tables: %s', (name) => {
    const lines = read(name).split('\n')
    expect(lines.filter((line) => line.length > LONGEST_LINE && !line.startsWith('|'))).toEqual([])
  })

  it('is an index that leads to every page', () => {
    const index = read('docs/README.md')
    const pages = readdirSync(path.join(ROOT, 'docs')).filter((name) => name.endsWith('.md') && name !== 'README.md')
    expect(pages.length).toBeGreaterThan(10)
    expect(pages.filter((name) => !index.includes(`(${name})`) && !index.includes(`(${name}#`))).toEqual([])
  })
})
